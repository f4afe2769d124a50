/** Secrets: stored, replaced and removed; never shown. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { cache, of } from "../api/cache";
import { answer, api } from "../api/client";
import { useMay } from "../lib/roles";
import { Actor } from "../ui/actor";
import { Confirm, Dialog } from "../ui/dialog";
import { TextField } from "../ui/form";
import { Button, Empty, Found, Moment, Sheet, Wrong } from "../ui/parts";
import { KINDS } from "./kinds";

const KEY = [...of.admin, "secrets"];

export function Secrets() {
  const may = useMay("editor");
  const secrets = useQuery({
    queryKey: KEY,
    queryFn: async () => (await answer(api.GET("/secrets", { params: { query: { limit: 500 } } }))).items,
  });
  const [storing, setStoring] = useState<string | null>(null);
  const [removing, setRemoving] = useState<string | null>(null);
  return (
    <Sheet
      title="Secrets"
      flush
      actions={
        may && (
          <Button kind="primary" icon="plus" onClick={() => setStoring("")}>
            Store a secret
          </Button>
        )
      }
    >
      <Found query={secrets}>
        {(found) =>
          found.length === 0 ? (
            <Empty title="No secrets">
              <p>{KINDS.secrets.below}</p>
            </Empty>
          ) : (
            <div className="scroll-x">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Stored</th>
                    <th scope="col">
                      <span className="visually-hidden">Change</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {found.map((secret) => (
                    <tr key={secret.id}>
                      <td>{secret.id}</td>
                      <td>
                        <Moment at={secret.updatedAt} /> by <Actor id={secret.updatedBy} />
                      </td>
                      <td>
                        {may && (
                          <div className="row" style={{ justifyContent: "flex-end" }}>
                            <Button small onClick={() => setStoring(secret.id)} aria-label={`Replace ${secret.id}`}>
                              Replace
                            </Button>
                            <Button
                              small
                              kind="danger"
                              onClick={() => setRemoving(secret.id)}
                              aria-label={`Remove ${secret.id}`}
                            >
                              Remove
                            </Button>
                          </div>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Found>
      {storing !== null && <Store name={storing} onClose={() => setStoring(null)} />}
      {removing !== null && (
        <Confirm
          title={`Remove ${removing}?`}
          does="Remove"
          danger
          onClose={() => setRemoving(null)}
          run={async () => {
            await answer(api.DELETE("/secrets/{id}", { params: { path: { id: removing } } }));
            await cache.invalidateQueries({ queryKey: KEY });
          }}
        >
          <p>Tasks that name it will fail until it is stored again.</p>
        </Confirm>
      )}
    </Sheet>
  );
}

function Store({ name, onClose }: { name: string; onClose: () => void }) {
  const [id, setId] = useState(name);
  const [value, setValue] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const store = async () => {
    setBusy(true);
    setError(null);
    try {
      await answer(api.PUT("/secrets/{id}", { params: { path: { id: id.trim() } }, body: { value } }));
      await cache.invalidateQueries({ queryKey: KEY });
      onClose();
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={name ? `Replace ${name}` : "Store a secret"}
      onClose={onClose}
      onSubmit={() => void store()}
      foot={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button type="submit" kind="primary" busy={busy} disabled={!id.trim() || !value}>
            Store
          </Button>
        </>
      }
    >
      {!name && <TextField label="Name" value={id} onChange={(event) => setId(event.target.value)} />}
      <TextField
        label="Value"
        type="password"
        autoComplete="new-password"
        hint="Attempts that begin from now on get it."
        value={value}
        onChange={(event) => setValue(event.target.value)}
      />
      {error !== null && <Wrong error={error} />}
    </Dialog>
  );
}
