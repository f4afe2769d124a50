/** Tokens of programs: who issued them, what they may do, until when. A token's text is shown once. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { cache, of } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import type { Role } from "../lib/roles";
import { Actor } from "../ui/actor";
import { Confirm, Dialog } from "../ui/dialog";
import { SelectField, TextField } from "../ui/form";
import { Button, Copy, Empty, Found, Moment, Notice, Sheet, Tag, Wrong } from "../ui/parts";
import { ROLES } from "./roles";

type Token = Shape<"TokenInfo">;
const KEY = [...of.admin, "tokens"];

export function Tokens() {
  const tokens = useQuery({
    queryKey: KEY,
    queryFn: async () => (await answer(api.GET("/tokens", { params: { query: { limit: 500 } } }))).items,
  });
  const [issuing, setIssuing] = useState(false);
  const [revoking, setRevoking] = useState<Token | null>(null);
  return (
    <Sheet
      title="Tokens"
      flush
      actions={
        <Button kind="primary" icon="plus" onClick={() => setIssuing(true)}>
          Issue a token
        </Button>
      }
    >
      <Found query={tokens}>
        {(found) =>
          found.length === 0 ? (
            <Empty title="No tokens">
              <p>Programs, such as a CI or a worker, sign in with a token of their own.</p>
            </Empty>
          ) : (
            <div className="scroll-x">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Role</th>
                    <th scope="col">Namespace</th>
                    <th scope="col">Issued</th>
                    <th scope="col">Ends</th>
                    <th scope="col">
                      <span className="visually-hidden">Revoke</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {found.map((token) => (
                    <tr key={token.id}>
                      <td title={token.id}>{token.name || token.id}</td>
                      <td>
                        <Tag>{token.role}</Tag>
                      </td>
                      <td>{token.namespace === "*" ? "all" : token.namespace}</td>
                      <td>
                        <Moment at={token.createdAt} /> by <Actor id={token.createdBy} />
                      </td>
                      <td>{token.expiresAt ? <Moment at={token.expiresAt} /> : "never"}</td>
                      <td className="right">
                        <Button
                          small
                          kind="danger"
                          onClick={() => setRevoking(token)}
                          aria-label={`Revoke ${token.name || token.id}`}
                        >
                          Revoke
                        </Button>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Found>
      {issuing && <Issue onClose={() => setIssuing(false)} />}
      {revoking && (
        <Confirm
          title={`Revoke ${revoking.name || revoking.id}?`}
          does="Revoke it"
          danger
          onClose={() => setRevoking(null)}
          run={async () => {
            await answer(api.DELETE("/tokens/{token}", { params: { path: { token: revoking.id } } }));
            await cache.invalidateQueries({ queryKey: KEY });
          }}
        >
          <p>Whoever uses it is refused within seconds. It cannot be brought back.</p>
        </Confirm>
      )}
    </Sheet>
  );
}

function Issue({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("operator");
  const [days, setDays] = useState("90");
  const [issued, setIssued] = useState<Shape<"NewToken"> | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const issue = async () => {
    setBusy(true);
    setError(null);
    try {
      const expiresAt = days ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : null;
      setIssued(await answer(api.POST("/tokens", { body: { name, role, expiresAt } })));
      await cache.invalidateQueries({ queryKey: KEY });
    } catch (caught) {
      setError(caught);
    }
    setBusy(false);
  };
  if (issued) {
    return (
      <Dialog title="The token" onClose={onClose} foot={<Button onClick={onClose}>Done</Button>}>
        <Notice tone="warn">Copy it now: it is shown this once.</Notice>
        <div className="row">
          <code className="code grow">{issued.token}</code>
          <Copy text={issued.token} what="the token" />
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog
      title="Issue a token"
      onClose={onClose}
      onSubmit={() => void issue()}
      foot={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button type="submit" kind="primary" busy={busy}>
            Issue it
          </Button>
        </>
      }
    >
      <TextField
        label="Name"
        hint="Who or what uses it."
        required
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <SelectField
        label="Role"
        value={role}
        choices={ROLES}
        onChange={(event) => setRole(event.target.value as Role)}
      />
      <SelectField
        label="Ends"
        value={days}
        choices={[
          { value: "1", label: "in a day" },
          { value: "30", label: "in 30 days" },
          { value: "90", label: "in 90 days" },
          { value: "365", label: "in a year" },
          { value: "", label: "never" },
        ]}
        onChange={(event) => setDays(event.target.value)}
      />
      {error !== null && <Wrong error={error} />}
    </Dialog>
  );
}
