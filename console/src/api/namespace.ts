/** The namespace that a page was opened in: what is begun in one never ends in another. */

import { useState } from "react";
import { session } from "./session";

export interface OwnNamespace {
  name: string;
  /** For calls about what is in it, whatever is chosen meanwhile. */
  headers: { "X-Namespace": string };
}

export function useNamespace(): OwnNamespace {
  const [own] = useState(() => {
    const name = session.get()?.namespace ?? "";
    return { name, headers: { "X-Namespace": name } };
  });
  return own;
}
