/** The pages and their addresses. Each is fetched when it is first gone to. */

import { QueryClientProvider } from "@tanstack/react-query";
import { lazy, Suspense, useEffect } from "react";
import { Route, Router, Switch } from "wouter";
import { cache, forget, keepFresh } from "./api/cache";
import { live } from "./api/live";
import { useSession } from "./api/session";
import { keepSignedIn } from "./api/signin";
import { Frame } from "./frame";
import { leaving } from "./lib/leaving";
import { Broken } from "./pages/broken";
import { NoSuchPage } from "./pages/no-such-page";
import { SignInPage } from "./pages/sign-in";
import { Loading } from "./ui/parts";
import { Toasts } from "./ui/toasts";

const Overview = lazy(() => import("./pages/overview"));
const Jobs = lazy(() => import("./pages/jobs"));
const EditJob = lazy(() => import("./pages/edit-job"));
const Job = lazy(() => import("./pages/job"));
const Run = lazy(() => import("./pages/run"));
const Runs = lazy(() => import("./pages/runs"));
const Backfills = lazy(() => import("./pages/backfills"));
const Backfill = lazy(() => import("./pages/backfill"));
const DeadLetters = lazy(() => import("./pages/dead-letters"));
const Workers = lazy(() => import("./pages/workers"));
const Shared = lazy(() => import("./pages/shared"));
const Audit = lazy(() => import("./pages/audit"));
const Access = lazy(() => import("./pages/access"));

export function App() {
  return (
    <QueryClientProvider client={cache}>
      <Signed />
      <Toasts />
    </QueryClientProvider>
  );
}

function Signed() {
  const isSignedIn = useSession() !== null;
  useEffect(() => {
    if (!isSignedIn) return;
    live.start();
    const ends = [keepFresh(), keepSignedIn(), () => live.stop(), forget];
    return () => {
      for (const end of ends) end();
    };
  }, [isSignedIn]);
  if (!isSignedIn) return <SignInPage />;
  return (
    <Router aroundNav={leaving}>
      <Frame>
        <Broken>
          <Suspense fallback={<Loading />}>
            <Pages />
          </Suspense>
        </Broken>
      </Frame>
    </Router>
  );
}

function Pages() {
  return (
    <Switch>
      <Route path="/" component={Overview} />
      <Route path="/jobs" component={Jobs} />
      <Route path="/jobs/new" component={EditJob} />
      <Route path="/jobs/:job/edit" component={EditJob} />
      <Route path="/jobs/:job/runs/:run" component={Run} />
      <Route path="/jobs/:job/backfills/:backfill" component={Backfill} />
      <Route path="/jobs/:job/:tab?" component={Job} />
      <Route path="/runs" component={Runs} />
      <Route path="/backfills" component={Backfills} />
      <Route path="/deadletters" component={DeadLetters} />
      <Route path="/workers" component={Workers} />
      <Route path="/shared/:kind?/:id?" component={Shared} />
      <Route path="/audit" component={Audit} />
      <Route path="/access/:tab?" component={Access} />
      <Route component={NoSuchPage} />
    </Switch>
  );
}
