/** The difference of two definitions; what draws it is fetched when one is looked at. */

import { lazy, Suspense } from "react";
import { Loading } from "../ui/parts";

const DiffView = lazy(() => import("./diff-view"));

export function Diff(props: { before: string; after: string; label: string }) {
  if (props.before === props.after) return <p className="soft">Both say the same, letter by letter.</p>;
  return (
    <Suspense fallback={<Loading />}>
      <DiffView {...props} />
    </Suspense>
  );
}

/** What changed, in the server's words. */
export function Changes({ summary, label }: { summary: readonly string[]; label: string }) {
  return (
    <ul className="changes" aria-label={label}>
      {summary.map((line, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines of a text, which do not move
        <li key={place}>{line}</li>
      ))}
    </ul>
  );
}
