/** Lays graphs out beside the page, which stays usable meanwhile. */

import { arrange } from "./arrange";
import type { ToArrange } from "./layout";

self.onmessage = (event: MessageEvent<{ number: number; asked: ToArrange }>) => {
  const { number, asked } = event.data;
  self.postMessage({ number, layout: arrange(asked) });
};
