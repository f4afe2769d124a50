/** Runs that failed for good, and a way to run one or all of them again. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { cache, of } from "../api/cache";
import { answer, api, type Shape } from "../api/client";
import { useTopic } from "../api/live";
import { useTitle } from "../lib/hooks";
import { useMay } from "../lib/roles";
import { Confirm } from "../ui/dialog";
import { usePages } from "../ui/pages";
import { Button, Empty, Found, Moment, Notice, PageHead, Sheet } from "../ui/parts";
import { Rows } from "../ui/rows";
import { doing, say } from "../ui/toasts";

type Letter = Shape<"DeadLetter">;

export default function DeadLettersPage() {
  useTitle("Dead letters");
  useTopic("runs");
  const may = useMay("operator");
  const [asking, setAsking] = useState(false);
  const { query, items, more, fetchMore } = usePages([...of.runs, "dead"], (cursor) =>
    answer(api.GET("/deadletters", { params: { query: { limit: 100, cursor } } })),
  );
  return (
    <>
      <PageHead title="Dead letters" below="Runs that are out of attempts. Redriving one runs it again, as a new run.">
        {may && items.length > 0 && (
          <Button kind="primary" icon="rerun" onClick={() => setAsking(true)}>
            Redrive all
          </Button>
        )}
      </PageHead>
      <Sheet label="Dead letters" flush>
        <Found query={query}>
          {() =>
            items.length === 0 ? (
              <Empty title="No dead letters">
                <p>Every run has succeeded in the end, or is still being tried.</p>
              </Empty>
            ) : (
              <Rows
                items={items}
                height={64}
                label="Dead letters"
                keyOf={(letter) => letter.id}
                more={more}
                fetchMore={fetchMore}
              >
                {(letter) => <LetterRow letter={letter} may={may} />}
              </Rows>
            )
          }
        </Found>
      </Sheet>
      {asking && <RedriveAll onClose={() => setAsking(false)} />}
    </>
  );
}

function LetterRow({ letter, may }: { letter: Letter; may: boolean }) {
  const [busy, setBusy] = useState(false);
  const redrive = async () => {
    setBusy(true);
    await doing(`${letter.jobId} runs again.`, async () => {
      await answer(api.POST("/deadletters/{letter}/redrive", { params: { path: { letter: letter.id } } }));
      await cache.invalidateQueries({ queryKey: of.runs });
    });
    setBusy(false);
  };
  return (
    <div className="list-line">
      <div className="grow">
        <div className="row">
          <Link href={`/jobs/${letter.jobId}`} className="cut">
            {letter.jobId}
          </Link>
          <span className="faint">
            <Moment at={letter.deadAt} />
          </span>
        </div>
        <div className="cut soft" title={letter.reason ?? undefined}>
          {letter.reason ?? "no reason was given"}
        </div>
      </div>
      <Link href={`/jobs/${letter.jobId}/runs/${letter.runId}`}>Run</Link>
      {may && (
        <Button small icon="rerun" busy={busy} onClick={() => void redrive()}>
          Redrive
        </Button>
      )}
    </div>
  );
}

/** First it says how many there are; then it is done. */
function RedriveAll({ onClose }: { onClose: () => void }) {
  const matched = useQuery({
    queryKey: [...of.runs, "dead", "count"],
    queryFn: () => redriveAll(true),
    gcTime: 0,
    retry: false,
  });
  return (
    <Confirm
      title="Redrive all dead letters?"
      does={matched.data === undefined ? "Run them again" : `Run ${matched.data} again`}
      run={async () => {
        say(`${await redriveAll(false)} run again.`);
        await cache.invalidateQueries({ queryKey: of.runs });
      }}
      onClose={onClose}
    >
      <p>Each becomes one new run, however often this is asked for.</p>
      <Found query={matched} lines={1}>
        {(count) => <Notice>{count} would be run again.</Notice>}
      </Found>
    </Confirm>
  );
}

async function redriveAll(dryRun: boolean): Promise<number> {
  let cursor: string | null = null;
  let count = 0;
  do {
    const page: Shape<"Bulk"> = await answer(
      api.POST("/deadletters/redrive", { body: { dryRun, limit: 100, cursor } as Shape<"RedriveBody"> }),
    );
    count += dryRun ? page.matched : page.done;
    cursor = page.nextCursor;
  } while (cursor);
  return count;
}
