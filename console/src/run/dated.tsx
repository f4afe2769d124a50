/** A sentence of the server's, with its instants in the user's zone. */

import { Moment } from "../ui/parts";

const INSTANT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

export function Dated({ text }: { text: string }) {
  return text.split(INSTANT).map((part, number) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text never change places
    number % 2 ? <Moment key={number} at={part} /> : <span key={number}>{part}</span>,
  );
}
