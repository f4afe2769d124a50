/** Searching the graph, its groups, and how near it is. */

import { Menu, type MenuItem } from "../../ui/menu";
import { Button, SearchBox } from "../../ui/parts";

const GROUPS_NAMED = 20;
const STEP = 1.35;

interface ToolbarProps {
  search: string;
  onSearch: (text: string) => void;
  /** How many match; null where nothing is looked for. */
  found: number | null;
  onNext: () => void;
  groups: readonly string[];
  closed: ReadonlySet<string>;
  onClosed: (closed: ReadonlySet<string>) => void;
  onZoom: (factor: number) => void;
  onFit: () => void;
}

export function Toolbar(props: ToolbarProps) {
  const { search, onSearch, found, onNext, groups, closed, onClosed, onZoom, onFit } = props;
  return (
    <div className="graph-tools">
      <form
        className="row grow"
        onSubmit={(event) => {
          event.preventDefault();
          onNext();
        }}
      >
        <SearchBox value={search} onChange={onSearch} label="Find a task" />
        {found !== null && (
          <span className="soft number" role="status">
            {found === 0 ? "None" : `${found.toLocaleString()} found`}
          </span>
        )}
        {found !== null && found > 0 && (
          <Button small type="submit">
            Next
          </Button>
        )}
      </form>
      <div className="row">
        {groups.length > 0 && (
          <Menu label="Groups" icon="down" items={groupItems(groups, closed, onClosed)}>
            Groups
          </Menu>
        )}
        <Button kind="quiet" aria-label="Zoom out" title="Zoom out" onClick={() => onZoom(1 / STEP)}>
          −
        </Button>
        <Button kind="quiet" aria-label="Zoom in" title="Zoom in" onClick={() => onZoom(STEP)}>
          +
        </Button>
        <Button onClick={onFit}>Fit</Button>
      </div>
    </div>
  );
}

function groupItems(
  groups: readonly string[],
  closed: ReadonlySet<string>,
  onClosed: (closed: ReadonlySet<string>) => void,
): MenuItem[] {
  const toggled = (group: string) => {
    const next = new Set(closed);
    if (!next.delete(group)) next.add(group);
    onClosed(next);
  };
  return [
    { label: "Close all", run: () => onClosed(new Set(groups)) },
    { label: "Open all", run: () => onClosed(new Set()) },
    ...groups.slice(0, GROUPS_NAMED).map((group) => ({
      label: `${closed.has(group) ? "Open" : "Close"} ${group}`,
      run: () => toggled(group),
    })),
  ];
}
