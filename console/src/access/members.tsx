/** The people of a namespace and their roles. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { cache, of } from "../api/cache";
import { answer, api } from "../api/client";
import { useSession } from "../api/session";
import type { Role } from "../lib/roles";
import { Confirm, Dialog } from "../ui/dialog";
import { SelectField, TextField } from "../ui/form";
import { Button, Empty, Found, Sheet, Wrong } from "../ui/parts";
import { doing } from "../ui/toasts";
import { ROLES } from "./roles";

export function Members() {
  const ns = useSession()?.namespace ?? "";
  const key = [...of.admin, "members", ns];
  const members = useQuery({
    queryKey: key,
    queryFn: async () =>
      (await answer(api.GET("/namespaces/{ns}/members", { params: { path: { ns }, query: { limit: 500 } } }))).items,
  });
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<string | null>(null);
  const put = async (member: string, role: Role) => {
    await answer(api.PUT("/namespaces/{ns}/members/{member}", { params: { path: { ns, member } }, body: { role } }));
    await cache.invalidateQueries({ queryKey: key });
  };
  return (
    <Sheet
      title={`Members of ${ns}`}
      flush
      actions={
        <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>
          Add a member
        </Button>
      }
    >
      <Found query={members}>
        {(found) =>
          found.length === 0 ? (
            <Empty title="No members">
              <p>On AWS, people sign in through the user pool and get their roles here. Programs use tokens.</p>
            </Empty>
          ) : (
            <table className="table">
              <thead>
                <tr>
                  <th scope="col">Member</th>
                  <th scope="col">Role</th>
                  <th scope="col">
                    <span className="visually-hidden">Remove</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {found.map(({ member, role }) => (
                  <tr key={member}>
                    <td>{member}</td>
                    <td>
                      <select
                        className="input"
                        aria-label={`Role of ${member}`}
                        value={role}
                        onChange={(event) => {
                          const next = event.target.value as Role;
                          void doing(`${member} is ${next} now.`, () => put(member, next));
                        }}
                      >
                        {ROLES.map((one) => (
                          <option key={one.value}>{one.value}</option>
                        ))}
                      </select>
                    </td>
                    <td className="right">
                      <Button small kind="danger" onClick={() => setRemoving(member)} aria-label={`Remove ${member}`}>
                        Remove
                      </Button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Found>
      {adding && <Add put={put} onClose={() => setAdding(false)} />}
      {removing !== null && (
        <Confirm
          title={`Remove ${removing}?`}
          does="Remove"
          danger
          onClose={() => setRemoving(null)}
          run={async () => {
            await answer(
              api.DELETE("/namespaces/{ns}/members/{member}", { params: { path: { ns, member: removing } } }),
            );
            await cache.invalidateQueries({ queryKey: key });
          }}
        >
          <p>They see nothing of {ns} any more, at the latest within five minutes.</p>
        </Confirm>
      )}
    </Sheet>
  );
}

function Add({ put, onClose }: { put: (member: string, role: Role) => Promise<void>; onClose: () => void }) {
  const [member, setMember] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const add = async () => {
    setBusy(true);
    try {
      await put(member.trim(), role);
      onClose();
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Add a member"
      onClose={onClose}
      onSubmit={() => void add()}
      foot={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button type="submit" kind="primary" busy={busy} disabled={!member.trim()}>
            Add
          </Button>
        </>
      }
    >
      <TextField
        label="Member"
        hint="As the user pool names the person: the user's id (sub)."
        value={member}
        onChange={(event) => setMember(event.target.value)}
      />
      <SelectField
        label="Role"
        value={role}
        choices={ROLES}
        onChange={(event) => setRole(event.target.value as Role)}
      />
      {error !== null && <Wrong error={error} />}
    </Dialog>
  );
}
