/** The signed-in user: their account, light or dark, and the sign-out. */
import { useRouter } from "@tanstack/react-router";
import { signOut } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Menu, MenuChoices, MenuItem, MenuSeparator } from "../../ui/menu.tsx";
import { notifyOfError } from "../../ui/feedback/notifications.tsx";
import { useMe } from "../session-state.ts";
import { setTheme, useTheme } from "../theme.ts";

const THEME_CHOICES = [
  { value: "system", name: "System" },
  { value: "light", name: "Light" },
  { value: "dark", name: "Dark" },
] as const;

export function AccountMenu() {
  const router = useRouter();
  const { user } = useMe();
  const theme = useTheme();
  return (
    <Menu
      trigger={
        <Button kind="quiet" aria-label="Your account">
          <Icon name="user" />
        </Button>
      }
    >
      <p className="menu-label">{user.email}</p>
      <MenuItem onClick={() => void router.navigate({ to: "/me" })}>Your account</MenuItem>
      <MenuItem onClick={() => window.open("/docs", "_blank", "noopener")}>API reference</MenuItem>
      <MenuSeparator />
      <MenuChoices label="Appearance" value={theme} choices={THEME_CHOICES} onChoose={setTheme} />
      <MenuSeparator />
      <MenuItem onClick={() => void signOut().catch(notifyOfError)}>Sign out</MenuItem>
    </Menu>
  );
}
