/** Who did what, newest first. */

import { useState } from "react";
import { of } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import { csv, offerFile } from "../lib/download";
import { useTitle } from "../lib/hooks";
import { Actor } from "../ui/actor";
import { Dialog } from "../ui/dialog";
import { TextField } from "../ui/form";
import { usePages } from "../ui/pages";
import { Button, Empty, Found, Moment, PageHead, SearchBox, Sheet } from "../ui/parts";
import { Rows } from "../ui/rows";

type Row = Shape<"AuditRow">;

/** The end of a day of the user's, from what a date input says. */
function instant(day: string, daysLater = 0): string | undefined {
  if (!day) return undefined;
  const at = new Date(`${day}T00:00:00`);
  at.setDate(at.getDate() + daysLater);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}

export default function AuditPage() {
  useTitle("Audit");
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [text, setText] = useState("");
  const [shown, setShown] = useState<Row | null>(null);
  const { query, items, more, fetchMore } = usePages([...of.admin, "audit", from, to], (cursor) =>
    answer(api.GET("/audit", { params: { query: { from: instant(from), to: instant(to, 1), limit: 100, cursor } } })),
  );
  const sought = text.trim().toLowerCase();
  const rows = sought ? items.filter((row) => wordsOf(row).includes(sought)) : items;
  const save = () => {
    const cells = rows.map((row) => [row.at, row.actor, row.action, row.subject, row.note]);
    offerFile("audit.csv", csv(["at", "actor", "action", "subject", "note"], cells), "text/csv");
  };
  return (
    <>
      <PageHead title="Audit" below="Every change, who made it and when. Rows are never altered.">
        <Button icon="download" disabled={rows.length === 0} onClick={save}>
          CSV
        </Button>
      </PageHead>
      <div className="row wrap" style={{ alignItems: "end", gap: 12 }}>
        <SearchBox label="Search in what is loaded" value={text} onChange={setText} />
        <TextField label="From" type="date" value={from} onChange={(event) => setFrom(event.target.value)} />
        <TextField label="To" type="date" value={to} onChange={(event) => setTo(event.target.value)} />
      </div>
      <Sheet label="Audit" flush>
        <Found query={query}>
          {() =>
            rows.length === 0 ? (
              <Empty title="No rows match">{more && <Button onClick={fetchMore}>Look further back</Button>}</Empty>
            ) : (
              <Rows
                items={rows}
                height={60}
                label="Audit rows"
                keyOf={(row) => `${row.at}${row.action}${row.subject}`}
                more={more}
                fetchMore={fetchMore}
              >
                {(row) => <AuditLine row={row} show={() => setShown(row)} />}
              </Rows>
            )
          }
        </Found>
      </Sheet>
      {shown && <Details row={shown} onClose={() => setShown(null)} />}
    </>
  );
}

function wordsOf(row: Row): string {
  return `${row.actor} ${row.action} ${row.subject} ${row.note}`.toLowerCase();
}

function AuditLine({ row, show }: { row: Row; show: () => void }) {
  return (
    <div className="list-line">
      <div className="grow">
        <div className="row">
          <strong className="cut">{row.action}</strong>
          <span className="cut">{row.subject}</span>
        </div>
        <div className="cut soft">
          <Moment at={row.at} /> by <Actor id={row.actor} />
          {row.note && `: ${row.note}`}
        </div>
      </div>
      <Button small onClick={show} aria-label={`Details of ${row.action} of ${row.subject}`}>
        Details
      </Button>
    </div>
  );
}

function Details({ row, onClose }: { row: Row; onClose: () => void }) {
  return (
    <Dialog title={row.action} onClose={onClose}>
      <dl className="facts">
        <dt>Subject</dt>
        <dd>{row.subject}</dd>
        <dt>By</dt>
        <dd>
          <Actor id={row.actor} />
        </dd>
        <dt>At</dt>
        <dd>
          <Moment at={row.at} />
        </dd>
        {row.note && (
          <>
            <dt>Note</dt>
            <dd>{row.note}</dd>
          </>
        )}
      </dl>
      {(["before", "after"] as const).map(
        (side) =>
          row[side] && (
            <section key={side} className="stack">
              <h3>{side === "before" ? "Before" : "After"}</h3>
              {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so that keys must reach it */}
              <pre className="code" tabIndex={0}>
                {JSON.stringify(row[side], null, 2)}
              </pre>
            </section>
          ),
      )}
    </Dialog>
  );
}
