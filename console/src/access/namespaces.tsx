/** Namespaces: what keeps teams apart, with limits and a weight each, and a way to stop everything in one. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { cache, of } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import { useMay } from "../lib/roles";
import { Confirm, Dialog } from "../ui/dialog";
import { SelectField, TextField } from "../ui/form";
import { Menu } from "../ui/menu";
import { Button, Found, Sheet, Wrong } from "../ui/parts";
import { say } from "../ui/toasts";

type Info = Shape<"NamespaceInfo">;
type Asked = { does: "edit" | "pause" | "resume" | "remove"; info: Info };

const LIMITS = [
  ["jobs", "Jobs at most"],
  ["frequentJobs", "Jobs at most that fire more often than each minute"],
  ["requestsPerSecond", "Calls per second at most"],
  ["backfills", "Backfills at once at most"],
] as const;

export function Namespaces() {
  const may = useMay("admin");
  const namespaces = useQuery({
    queryKey: [...of.admin, "namespaces", "all"],
    queryFn: async () => (await answer(api.GET("/namespaces", { params: { query: { limit: 500 } } }))).items,
  });
  const [asked, setAsked] = useState<Asked | "new" | null>(null);
  const close = () => setAsked(null);
  return (
    <Sheet
      title="Namespaces"
      flush
      actions={
        may && (
          <Button kind="primary" icon="plus" onClick={() => setAsked("new")}>
            Create a namespace
          </Button>
        )
      }
    >
      <Found query={namespaces}>
        {(found) => (
          <table className="table">
            <thead>
              <tr>
                <th scope="col">Namespace</th>
                <th scope="col">About</th>
                <th scope="col">Weight</th>
                <th scope="col">
                  <span className="visually-hidden">More</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {found.map((info) => (
                <tr key={info.namespace}>
                  <td>{info.namespace}</td>
                  <td>
                    {info.description || <span className="faint">–</span>}
                    <div className="soft">{limitsInWords(info.limits)}</div>
                  </td>
                  <td className="number">{info.weight}</td>
                  <td className="right">
                    <Menu
                      label={`More about ${info.namespace}`}
                      items={
                        may
                          ? [
                              { label: "Change", icon: "edit", run: () => setAsked({ does: "edit", info }) },
                              { label: "Pause every job", icon: "pause", run: () => setAsked({ does: "pause", info }) },
                              { label: "Resume", icon: "play", run: () => setAsked({ does: "resume", info }) },
                              {
                                label: "Remove",
                                icon: "trash",
                                danger: true,
                                run: () => setAsked({ does: "remove", info }),
                              },
                            ]
                          : []
                      }
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Found>
      {asked === "new" && <Edit onClose={close} />}
      {asked !== null && asked !== "new" && <Answer asked={asked} onClose={close} />}
    </Sheet>
  );
}

function limitsInWords(limits: Record<string, unknown>): string {
  return LIMITS.flatMap(([name, label]) =>
    typeof limits[name] === "number" ? [`${label.toLowerCase()}: ${limits[name]}`] : [],
  ).join("; ");
}

function Answer({ asked: { does, info }, onClose }: { asked: Asked; onClose: () => void }) {
  const [catchup, setCatchup] = useState("none");
  const ns = info.namespace;
  if (does === "edit") return <Edit info={info} onClose={onClose} />;
  if (does === "remove") {
    return (
      <Confirm
        title={`Remove ${ns}?`}
        does="Remove it"
        danger
        typed={ns}
        onClose={onClose}
        run={async () => {
          await answer(api.DELETE("/namespaces/{ns}", { params: { path: { ns } } }));
          await cache.invalidateQueries({ queryKey: of.admin });
        }}
      >
        <p>Only an empty namespace can be removed, and its name is not used again.</p>
      </Confirm>
    );
  }
  const isPause = does === "pause";
  return (
    <Confirm
      title={isPause ? `Pause every job of ${ns}?` : `Resume ${ns}?`}
      does={isPause ? "Pause them all" : "Resume"}
      danger={isPause}
      onClose={onClose}
      run={async () => {
        say(`${await switchAll(ns, does, catchup)} jobs ${isPause ? "paused" : "resumed"}.`);
        await cache.invalidateQueries();
      }}
    >
      <p>
        {isPause
          ? "Nothing in it fires until it is resumed. Runs that are under way go on."
          : "What its pause has stopped goes on. Jobs that were paused one by one stay paused."}
      </p>
      {!isPause && (
        <SelectField
          label="Fires that were missed"
          value={catchup}
          choices={[
            { value: "none", label: "leave out" },
            { value: "latest", label: "run the latest of each job" },
            { value: "all", label: "run all of them" },
          ]}
          onChange={(event) => setCatchup(event.target.value)}
        />
      )}
    </Confirm>
  );
}

/** A page of jobs a call, until none is left. */
async function switchAll(ns: string, does: "pause" | "resume", catchup: string): Promise<number> {
  let cursor: string | null = null;
  let changed = 0;
  do {
    const body = { cursor, ...(does === "resume" ? { catchup } : {}) } as Shape<"SwitchNamespaceBody">;
    const path = does === "pause" ? ("/namespaces/{ns}/pause" as const) : ("/namespaces/{ns}/resume" as const);
    const page: Shape<"Switched"> = await answer(api.POST(path, { params: { path: { ns } }, body }));
    changed += page.changed;
    cursor = page.nextCursor;
  } while (cursor);
  return changed;
}

function Edit({ info, onClose }: { info?: Info; onClose: () => void }) {
  const [name, setName] = useState(info?.namespace ?? "");
  const [description, setDescription] = useState(info?.description ?? "");
  const [weight, setWeight] = useState(String(info?.weight ?? 1));
  const [limits, setLimits] = useState<Record<string, string>>(() =>
    Object.fromEntries(LIMITS.map(([limit]) => [limit, String(info?.limits[limit] ?? "")])),
  );
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setBusy(true);
    setError(null);
    const given = LIMITS.flatMap(([limit]) => (limits[limit] ? [[limit, Number(limits[limit])]] : []));
    try {
      await answer(
        api.PUT("/namespaces/{ns}", {
          params: { path: { ns: name.trim() } },
          headers: info ? { "If-Match": String(info.version) } : { "If-None-Match": "*" },
          body: { description, weight: Number(weight), limits: Object.fromEntries(given) } as Shape<"NamespaceBody">,
        }),
      );
      await cache.invalidateQueries({ queryKey: of.admin });
      onClose();
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={info ? `Change ${info.namespace}` : "Create a namespace"}
      onClose={onClose}
      onSubmit={() => void save()}
      foot={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button type="submit" kind="primary" busy={busy} disabled={!name.trim()}>
            {info ? "Save" : "Create"}
          </Button>
        </>
      }
    >
      {!info && (
        <TextField
          label="Name"
          value={name}
          hint="It stays: it cannot be changed later."
          onChange={(event) => setName(event.target.value)}
        />
      )}
      <TextField label="About" value={description} onChange={(event) => setDescription(event.target.value)} />
      <TextField
        label="Weight"
        type="number"
        min={1}
        hint="Its share of the workers where several namespaces want them."
        value={weight}
        onChange={(event) => setWeight(event.target.value)}
      />
      {LIMITS.map(([limit, label]) => (
        <TextField
          key={limit}
          label={label}
          type="number"
          min={0}
          placeholder="the usual"
          value={limits[limit] ?? ""}
          onChange={(event) => setLimits({ ...limits, [limit]: event.target.value })}
        />
      ))}
      {error !== null && <Wrong error={error} />}
    </Dialog>
  );
}
