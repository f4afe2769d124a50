/** A task, or a closed group, as a button in the graph. */

import { memo } from "react";
import { lookOf } from "../../lib/states";
import { HEIGHT, WIDTH } from "./layout";

export interface NodeProps {
  place: number;
  label: string;
  group: boolean;
  state: string;
  word: string;
  /** Such as 37/100. */
  count: string;
  /** In percent; less than 0 where there is none. */
  progress: number;
  failed: boolean;
  x: number;
  y: number;
  isChosen: boolean;
  isCurrent: boolean;
  isFaint: boolean;
  /** Too far away to be read: it is there for the keyboard, and painted behind. */
  isFar: boolean;
}

export const Node = memo(function Node(props: NodeProps) {
  const { tone, glyph } = lookOf(props.state);
  const { word } = props;
  const flags = [props.group && "group", props.isFaint && "faint-node", props.isFar && "far"].filter(Boolean);
  return (
    <button
      type="button"
      className={`graph-node ${flags.join(" ")}`}
      data-place={props.place}
      data-tone={tone}
      data-state={props.state}
      aria-pressed={props.isChosen}
      tabIndex={props.isCurrent ? 0 : -1}
      title={props.label}
      style={{ transform: `translate(${props.x}px, ${props.y}px)`, width: WIDTH, height: HEIGHT }}
    >
      <span className="name cut">{props.label}</span>{" "}
      <span className="what">
        <span className="glyph" aria-hidden="true">
          {glyph}
        </span>{" "}
        <span className="cut">{word}</span> {props.count && <span className="count number">{props.count}</span>}
      </span>
      {props.group && (
        <>
          {" "}
          <span className="visually-hidden">group</span>
        </>
      )}
      {props.progress >= 0 && (
        <span className="track" data-failed={props.failed}>
          <span style={{ width: `${props.progress}%` }} />
        </span>
      )}
    </button>
  );
});
