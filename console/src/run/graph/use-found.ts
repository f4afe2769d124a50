/** What is looked for in the graph: a part of a name, or a state. */

import { useMemo, useState } from "react";
import { useSettled } from "../../lib/hooks";
import type { Task } from "../tasks";
import { matching } from "./seen";
import type { Structure } from "./structure";

export interface Sought {
  search: string;
  setSearch: (text: string) => void;
  state: string;
  setState: (state: string) => void;
  /** The vertices that match; null where nothing is looked for. */
  found: ReadonlySet<number> | null;
}

export function useFound(structure: Structure, tasks: ReadonlyMap<string, Task>): Sought {
  const [search, setSearch] = useState("");
  const [state, setState] = useState("");
  const text = useSettled(search.trim().toLowerCase(), 150);
  const found = useMemo(
    () => (text || state ? matching(structure, tasks, text, state) : null),
    [structure, tasks, text, state],
  );
  return { search, setSearch, state, setState, found };
}
