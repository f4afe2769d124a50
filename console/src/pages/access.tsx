/** Who may do what: namespaces, members and tokens. */

import { useParams } from "wouter";
import { Members } from "../access/members";
import { Namespaces } from "../access/namespaces";
import { Tokens } from "../access/tokens";
import { useTitle } from "../lib/hooks";
import { useMay } from "../lib/roles";
import { Notice, PageHead } from "../ui/parts";
import { Tabs } from "../ui/tabs";

const TABS = [
  ["", "Namespaces"],
  ["members", "Members"],
  ["tokens", "Tokens"],
] as const;

export default function AccessPage() {
  useTitle("Access");
  const { tab = "" } = useParams<{ tab?: string }>();
  const isAdmin = useMay("admin");
  return (
    <>
      <PageHead title="Access" below="Roles are given per namespace; each may do what those before it may." />
      <Tabs
        label="Kinds of access"
        tabs={TABS.map(([id, label]) => ({ label, here: id === tab, href: `/access${id && `/${id}`}` }))}
      />
      {tab === "" && <Namespaces />}
      {tab !== "" && !isAdmin && <Notice>Members and tokens are shown to admins of this namespace.</Notice>}
      {tab === "members" && isAdmin && <Members />}
      {tab === "tokens" && isAdmin && <Tokens />}
    </>
  );
}
