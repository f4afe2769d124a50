/** Calendars, pools and templates: documents with versions, written as YAML. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { parse, stringify } from "yaml";
import { cache, of } from "../api/cache";
import { answer, api } from "../api/client";
import { ApiError } from "../api/problem";
import { useMay } from "../lib/roles";
import { Confirm, Dialog } from "../ui/dialog";
import { TextArea, TextField } from "../ui/form";
import { Button, Empty, Found, Sheet, Wrong } from "../ui/parts";
import { KINDS } from "./kinds";

export type DocumentKind = "calendars" | "pools" | "templates";

interface Document {
  id: string;
  version: number;
  [field: string]: unknown;
}

const CALLS = {
  calendars: { list: "/calendars", one: "/calendars/{id}" },
  pools: { list: "/pools", one: "/pools/{id}" },
  templates: { list: "/templates", one: "/templates/{id}" },
} as const;

function contentOf({ id: _, version: __, ...content }: Document): string {
  return stringify(content, { lineWidth: 100 });
}

export function Documents({ kind }: { kind: DocumentKind }) {
  const { label, one, below } = KINDS[kind];
  const may = useMay("editor");
  const key = [...of.admin, kind];
  const documents = useQuery({
    queryKey: key,
    queryFn: async () =>
      (await answer(api.GET(CALLS[kind].list, { params: { query: { limit: 500 } } }))).items as Document[],
  });
  const [editing, setEditing] = useState<Document | "new" | null>(null);
  const [removing, setRemoving] = useState<Document | null>(null);
  return (
    <Sheet
      title={label}
      flush
      actions={
        may && (
          <Button kind="primary" icon="plus" onClick={() => setEditing("new")}>
            New {one}
          </Button>
        )
      }
    >
      <Found query={documents}>
        {(found) =>
          found.length === 0 ? (
            <Empty title={`No ${label.toLowerCase()}`}>
              <p>{below}</p>
            </Empty>
          ) : (
            <ul>
              {found.map((document) => (
                <li key={document.id} className="document">
                  <div className="row wrap between">
                    <strong>{document.id}</strong>
                    <div className="row">
                      <span className="faint">version {document.version}</span>
                      {may && (
                        <>
                          <Button
                            small
                            icon="edit"
                            onClick={() => setEditing(document)}
                            aria-label={`Change ${document.id}`}
                          />
                          <Button
                            small
                            icon="trash"
                            kind="danger"
                            onClick={() => setRemoving(document)}
                            aria-label={`Remove ${document.id}`}
                          />
                        </>
                      )}
                    </div>
                  </div>
                  {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so that keys must reach it */}
                  <pre className="code" tabIndex={0}>
                    {contentOf(document)}
                  </pre>
                </li>
              ))}
            </ul>
          )
        }
      </Found>
      {editing && <Edit kind={kind} document={editing === "new" ? null : editing} onClose={() => setEditing(null)} />}
      {removing && (
        <Confirm
          title={`Remove ${removing.id}?`}
          does="Remove"
          danger
          onClose={() => setRemoving(null)}
          run={async () => {
            await answer(
              api.DELETE(CALLS[kind].one, {
                params: { path: { id: removing.id } },
                headers: { "If-Match": String(removing.version) },
              }),
            );
            await cache.invalidateQueries({ queryKey: key });
          }}
        >
          <p>Jobs that use it will say so. Their versions so far stay as they are.</p>
        </Confirm>
      )}
    </Sheet>
  );
}

function Edit({ kind, document, onClose }: { kind: DocumentKind; document: Document | null; onClose: () => void }) {
  const { one, example = "" } = KINDS[kind];
  const [id, setId] = useState(document?.id ?? "");
  const [text, setText] = useState(() => (document ? contentOf(document) : example));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      await answer(
        api.PUT(CALLS[kind].one, {
          params: { path: { id: id.trim() } },
          headers: document ? { "If-Match": String(document.version) } : { "If-None-Match": "*" },
          body: parse(text) as never,
        }),
      );
      await cache.invalidateQueries({ queryKey: [...of.admin, kind] });
      onClose();
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={document ? `Change ${document.id}` : `New ${one}`}
      kind="wide"
      onClose={onClose}
      onSubmit={() => void save()}
      foot={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button type="submit" kind="primary" busy={busy} disabled={!id.trim()}>
            Save
          </Button>
        </>
      }
    >
      {!document && <TextField label="Name" value={id} onChange={(event) => setId(event.target.value)} />}
      <TextArea label="Content, as YAML" rows={14} value={text} onChange={(event) => setText(event.target.value)} />
      {error !== null && <Wrong error={error} />}
      {error instanceof ApiError && error.fields.length > 0 && (
        <ul>
          {error.fields.map((field) => (
            <li key={field.path}>
              <code>{field.path}</code>: {field.message}
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}
