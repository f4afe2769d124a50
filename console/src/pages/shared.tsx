/** What jobs share. */

import { useParams } from "wouter";
import { useTitle } from "../lib/hooks";
import { Documents } from "../shared/documents";
import { isKind, KINDS, ORDER } from "../shared/kinds";
import { Secrets } from "../shared/secrets";
import { Datasets, Files } from "../shared/seen";
import { PageHead } from "../ui/parts";
import { Tabs } from "../ui/tabs";
import { NoSuchPage } from "./no-such-page";

export default function SharedPage() {
  const { kind = "calendars" } = useParams<{ kind?: string }>();
  useTitle("Shared");
  if (!isKind(kind)) return <NoSuchPage />;
  return (
    <>
      <PageHead title="Shared" below={KINDS[kind].below} />
      <Tabs
        label="What jobs share"
        tabs={ORDER.map((id) => ({ label: KINDS[id].label, here: id === kind, href: `/shared/${id}` }))}
      />
      {(kind === "calendars" || kind === "pools" || kind === "templates") && <Documents key={kind} kind={kind} />}
      {kind === "secrets" && <Secrets />}
      {kind === "datasets" && <Datasets />}
      {kind === "files" && <Files />}
    </>
  );
}
