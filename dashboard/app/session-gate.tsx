/** Shows its pages to a signed-in user, and the steps of the sign-in to others. The URL stays the same meanwhile. */
import { Outlet, useLocation } from "@tanstack/react-router";
import { lazy, Suspense, useEffect } from "react";
import { notify } from "../ui/feedback/notifications.tsx";
import { ErrorPage } from "../ui/feedback/error-page.tsx";
import { loadPage } from "../ui/feedback/load-error.ts";
import { Skeleton } from "../ui/feedback/skeleton.tsx";
import { retrySession, useSession } from "./session-state.ts";

const SignIn = lazy(async () => {
  const { SignIn: component } = await loadPage(() => import("../pages/sign-in/sign-in.tsx"));
  return { default: component };
});

/** Why a page requires a sign-in, for pages that people reach by a link or a command. */
const TITLES: Record<string, { title: string; intro: string }> = {
  "/activate": {
    title: "Connect a machine",
    intro: "Sign in, then compare the code with the one that your command line shows.",
  },
  "/invitation": {
    title: "Join an organization",
    intro: "Sign in with the email address that was invited, or create an account with it.",
  },
};

export function SessionGate() {
  const session = useSession();
  const { pathname } = useLocation();
  const notice = session.phase === "signed-in" ? session.notice : "";
  useEffect(() => {
    if (notice !== "") notify(notice);
  }, [notice]);
  switch (session.phase) {
    case "loading":
      return <LoadingPage />;
    case "failed":
      return <ErrorPage error={session.error} onRetry={retrySession} />;
    case "signed-out":
      return (
        <Suspense fallback={<LoadingPage />}>
          <SignIn
            title={TITLES[pathname]?.title ?? "Sign in"}
            intro={TITLES[pathname]?.intro ?? ""}
            notice={session.notice}
            challenge={session.challenge}
          />
        </Suspense>
      );
    case "signed-in":
      // Pages load their data again for another organization or another user.
      return <Outlet key={`${session.me.user.id} ${session.me.active_org.id}`} />;
  }
}

/** It appears only when the server answers slowly. */
function LoadingPage() {
  return (
    <main className="step loading-page">
      <h1 className="brand">Underpass</h1>
      <div className="card">
        <Skeleton lines={6} />
      </div>
    </main>
  );
}
