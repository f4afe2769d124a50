/** The layout of a structure, from the worker; kept, so that a change of state only recolours. */

import { useEffect, useState } from "react";
import type { Layout, ToArrange } from "./layout";
import type { Structure } from "./structure";

export type Arrange = (asked: ToArrange) => Promise<Layout>;

const KEPT = 12;
const kept = new Map<string, Promise<Layout>>();

let worker: Worker | undefined;
let last = 0;
const waiting = new Map<number, { done: (layout: Layout) => void; failed: (error: Error) => void }>();

/** In the worker, which is started when the first graph is shown. */
export const inWorker: Arrange = (asked) => {
  worker ??= started();
  last += 1;
  const number = last;
  worker.postMessage({ number, asked });
  return new Promise((done, failed) => waiting.set(number, { done, failed }));
};

function started(): Worker {
  const made = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module", name: "layout" });
  made.onmessage = (event: MessageEvent<{ number: number; layout: Layout }>) => {
    waiting.get(event.data.number)?.done(event.data.layout);
    waiting.delete(event.data.number);
  };
  made.onerror = () => {
    for (const { failed } of waiting.values()) failed(new Error("The graph could not be laid out."));
    waiting.clear();
    worker = undefined;
    made.terminate();
  };
  return made;
}

function layoutOf(structure: Structure, arrange: Arrange): Promise<Layout> {
  const known = kept.get(structure.key);
  if (known) return known;
  const made = arrange({
    ids: structure.vertices.map(({ id }) => id),
    groups: structure.vertices.map(({ group }) => group),
    edges: structure.edges,
  });
  kept.set(structure.key, made);
  made.catch(() => kept.delete(structure.key));
  for (const key of kept.keys()) if (kept.size > KEPT) kept.delete(key);
  return made;
}

export interface Laid {
  structure: Structure;
  layout: Layout;
}

/** The last structure that was laid out: it stays until the next is ready. */
export function useLayout(structure: Structure, arrange: Arrange): { laid: Laid | null; error: unknown } {
  const [found, setFound] = useState<{ laid: Laid | null; error: unknown }>({ laid: null, error: null });
  useEffect(() => {
    let isWanted = true;
    layoutOf(structure, arrange).then(
      (layout) => isWanted && setFound({ laid: { structure, layout }, error: null }),
      (error) => isWanted && setFound(({ laid }) => ({ laid, error })),
    );
    return () => {
      isWanted = false;
    };
  }, [structure, arrange]);
  return found;
}
