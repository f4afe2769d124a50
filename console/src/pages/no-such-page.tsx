import { useTitle } from "../lib/hooks";
import { Empty, LinkButton } from "../ui/parts";

export function NoSuchPage() {
  useTitle("No such page");
  return (
    <Empty title="There is no such page">
      <LinkButton href="/">To the overview</LinkButton>
    </Empty>
  );
}
