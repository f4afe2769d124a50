/** The lines of a log as they come, and where a word stands in them. */

import type { Shape } from "../../api/client";
import { plain } from "./plain";

export interface Line {
  at: string;
  stream: string;
  text: string;
  attempt: number;
}

export function lineOf(line: Shape<"LogLine">): Line {
  return { at: line.at, stream: line.stream, text: plain(line.text), attempt: line.attempt };
}

/** The numbers of the lines that a word stands in; a longer log is searched from where the last search ended. */
export class Search {
  readonly word: string;
  private found: readonly number[] = [];
  private read = 0;

  constructor(word: string) {
    this.word = word.toLowerCase();
  }

  in(lines: readonly Line[]): readonly number[] {
    if (!this.word) return [];
    if (lines.length < this.read) {
      this.found = [];
      this.read = 0;
    }
    const more: number[] = [];
    for (let number = this.read; number < lines.length; number += 1) {
      if (lines[number]?.text.toLowerCase().includes(this.word)) more.push(number);
    }
    this.read = lines.length;
    if (more.length) this.found = [...this.found, ...more];
    return this.found;
  }
}

export interface Piece {
  text: string;
  isFound: boolean;
}

/** A text, cut where the word stands. */
export function pieces(text: string, word: string): Piece[] {
  const low = text.toLowerCase();
  // A letter may become two in lower case; then places in the one are not places in the other.
  if (!word || low.length !== text.length) return [{ text, isFound: false }];
  const cut: Piece[] = [];
  let from = 0;
  for (let at = low.indexOf(word); at >= 0; at = low.indexOf(word, from)) {
    if (at > from) cut.push({ text: text.slice(from, at), isFound: false });
    cut.push({ text: text.slice(at, at + word.length), isFound: true });
    from = at + word.length;
  }
  if (from < text.length) cut.push({ text: text.slice(from), isFound: false });
  return cut;
}

/** The first found line after this one, or before it; round at the ends. */
export function nextFound(found: readonly number[], from: number, step: 1 | -1): number | null {
  if (found.length === 0) return null;
  if (step > 0) return found.find((number) => number > from) ?? found[0] ?? null;
  return found.findLast((number) => number < from) ?? found.at(-1) ?? null;
}
