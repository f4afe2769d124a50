/** Open groups: a box around what is in them, with a button that closes them. */

import { Icon } from "../../ui/icons";
import type { Box } from "./layout";

interface BoxesProps {
  boxes: readonly Box[];
  isNear: boolean;
  onClose: (group: string) => void;
}

export function Boxes({ boxes, isNear, onClose }: BoxesProps) {
  return boxes.map(({ group, x, y, width, height }) => (
    <div key={group} className="graph-box" style={{ transform: `translate(${x}px, ${y}px)`, width, height }}>
      {isNear && (
        <button type="button" tabIndex={-1} title={`Close the group ${group}`} onClick={() => onClose(group)}>
          <Icon name="down" />
          <span className="cut">{group.split(".").at(-1)}</span>
        </button>
      )}
    </div>
  ));
}
