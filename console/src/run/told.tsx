/** A sentence of the server's, with its instants in the user's zone, and with names for those who have one. */

import { Actor } from "../ui/actor";
import { Moment } from "../ui/parts";

const PARTS = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|\btoken:[0-9a-f]{8,})/;

export function Told({ text }: { text: string }) {
  return text.split(PARTS).map((part, number) => {
    if (number % 2 === 0) return part;
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text never change places
    return part.startsWith("token:") ? <Actor key={number} id={part} /> : <Moment key={number} at={part} />;
  });
}
