/** The entries that the palette finds: pages, actions, named resources and recent requests. */
import { useQuery } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import { namedResourcesQuery, type NamedResource } from "../../api/named-resources.ts";
import { organizationsQuery, switchOrganization } from "../../api/organization/organizations.ts";
import { load, signOut } from "../../api/session.ts";
import { formatAgentCommand } from "../../ui/text/agent-command.ts";
import type { IconName } from "../../ui/icon.tsx";
import { LOCALE } from "../../ui/text/locale.ts";
import { notify, notifyOfError } from "../../ui/feedback/notifications.tsx";
import { copyText } from "../../ui/text/clipboard.ts";
import { formatListedPath } from "../../ui/text/listed-path.ts";
import { getGrantableRoles } from "../grantable-roles.ts";
import { useHasRole } from "../roles.ts";
import { useMe } from "../session-state.ts";
import { formatKey, useShortcutGroups } from "../shortcuts.ts";
import { useNavigation } from "../shell/navigation.ts";
import { setTheme } from "../theme.ts";

export interface PaletteEntry {
  id: string;
  title: string;
  /** Found too, and shown beside the title. */
  detail?: string;
  /** Found, but not shown. */
  keywords?: string;
  /** The key that does the same. */
  shortcut?: string | undefined;
  icon: IconName;
  run: () => void;
}

export interface PaletteGroup {
  title: string;
  /** Shown before anything has been typed. */
  isSuggested?: boolean;
  items: PaletteEntry[];
}

const RECENT_REQUESTS_MAX = 200;

export function usePaletteGroups(): PaletteGroup[] {
  const { data: resources = [] } = useQuery(namedResourcesQuery);
  const { data: requests = [] } = useQuery({
    queryKey: ["recent-requests"],
    queryFn: ({ signal }) =>
      load<CaptureSummary[]>(`/inspector?limit=${RECENT_REQUESTS_MAX}`, signal),
  });
  const router = useRouter();
  return [
    { title: "Pages", isSuggested: true, items: usePageEntries() },
    { title: "Actions", isSuggested: true, items: useActionEntries() },
    ...RESOURCE_KINDS.map(({ kind, title, icon, href }) => ({
      title,
      items: resources
        .filter((resource) => resource.kind === kind)
        .map((resource) => ({
          id: `${kind} ${resource.id}`,
          title: resource.name,
          detail: resource.detail,
          icon,
          run: () => void router.navigate({ href: href(resource) }),
        })),
    })),
    {
      title: "Recent requests",
      items: requests.map(({ id, method, path, status, timestamp }) => ({
        id: `request ${id}`,
        title: `${method} ${formatListedPath(path)}`,
        detail: `${status ?? "open"} · ${new Date(timestamp).toLocaleTimeString(LOCALE)}`,
        icon: "requests" as const,
        run: () => void router.navigate({ to: "/requests/$id", params: { id } }),
      })),
    },
  ];
}

interface ResourceKind {
  kind: NamedResource["kind"];
  title: string;
  icon: IconName;
  /** The page that shows a resource of this kind. */
  href: (resource: NamedResource) => string;
}

const RESOURCE_KINDS: readonly ResourceKind[] = [
  { kind: "tunnel", title: "Tunnels", icon: "tunnel", href: ({ id }) => `/tunnels/${id}` },
  { kind: "domain", title: "Custom domains", icon: "domain", href: () => "/domains" },
  { kind: "network", title: "Networks", icon: "network", href: ({ id }) => `/networks/${id}` },
  {
    kind: "receiver",
    title: "Webhook receivers",
    icon: "receiver",
    href: ({ id }) => `/receivers/${id}`,
  },
  { kind: "project", title: "Projects", icon: "project", href: () => "/projects" },
  { kind: "token", title: "Tokens", icon: "token", href: () => "/tokens" },
  { kind: "name", title: "Reserved names", icon: "name", href: () => "/names" },
];

function usePageEntries(): PaletteEntry[] {
  const router = useRouter();
  const pages = useNavigation().flatMap(({ title: group, items }) =>
    items.map(({ path, title, icon }) => ({
      id: path,
      title,
      keywords: group,
      icon,
      run: () => void router.navigate({ to: path }),
    })),
  );
  const account: PaletteEntry = {
    id: "/me",
    title: "Your account",
    keywords: "sessions two-factor password security",
    icon: "user",
    run: () => void router.navigate({ to: "/me" }),
  };
  const reference: PaletteEntry = {
    id: "/docs",
    title: "API reference",
    icon: "help",
    run: () => void window.open("/docs", "_blank", "noopener"),
  };
  return [...pages, account, reference];
}

function useActionEntries(): PaletteEntry[] {
  const router = useRouter();
  const { active_org: active } = useMe();
  const { data: organizations = [] } = useQuery(organizationsQuery);
  const canWrite = useHasRole("member");
  const command = formatAgentCommand("http 3000");
  const copyCommand: PaletteEntry = {
    id: "copy command",
    title: "Copy the command that opens a tunnel",
    keywords: "connect new agent http",
    detail: command,
    icon: "tunnel",
    run: () => void copyText(command).then(() => notify("The command was copied."), notifyOfError),
  };
  const create: PaletteEntry = {
    id: "create tunnel",
    title: "Create a tunnel",
    keywords: "new",
    icon: "tunnel",
    run: () => void router.navigate({ to: "/tunnels", search: { dialog: "create" } }),
  };
  const invite: PaletteEntry = {
    id: "invite",
    title: "Invite a person",
    keywords: "member colleague",
    icon: "people",
    run: () => void router.navigate({ to: "/members", search: { dialog: "invite" } }),
  };
  const switches = organizations
    .filter(({ id }) => id !== active.id)
    .map(({ id, name, role }) => ({
      id: `switch ${id}`,
      title: `Switch to ${name}`,
      detail: role,
      keywords: "organization",
      icon: "people" as const,
      run: () => void switchOrganization(id).catch(notifyOfError),
    }));
  const themes = (["system", "light", "dark"] as const).map((theme) => ({
    id: `theme ${theme}`,
    title: theme === "system" ? "Use the system's appearance" : `Use the ${theme} appearance`,
    keywords: "theme mode color",
    icon: "theme" as const,
    run: () => setTheme(theme),
  }));
  const leave: PaletteEntry = {
    id: "sign out",
    title: "Sign out",
    keywords: "log out",
    icon: "user",
    run: () => void signOut().catch(notifyOfError),
  };
  return [
    ...(window.isSecureContext ? [copyCommand] : []),
    ...(canWrite ? [create] : []),
    ...(getGrantableRoles(active.role).length > 0 ? [invite] : []),
    ...useShortcutEntries(),
    ...switches,
    ...themes,
    leave,
  ];
}

/** The shortcuts that work on every page, except the one of the palette itself. */
function useShortcutEntries(): PaletteEntry[] {
  return useShortcutGroups()
    .filter(({ title }) => title === "Everywhere")
    .flatMap(({ shortcuts }) => shortcuts)
    .filter(({ keys }) => !keys.includes("Mod+k"))
    .map(({ keys, title, act }) => ({
      id: `shortcut ${title}`,
      title,
      shortcut: keys[0] === undefined ? undefined : formatKey(keys[0]),
      icon: "right",
      run: act,
    }));
}
