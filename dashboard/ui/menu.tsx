/** Menus of actions. */
import { Menu as BaseMenu } from "@base-ui/react/menu";
import { useRef, type ReactElement, type ReactNode } from "react";
import { Button } from "./button.tsx";

interface MenuProps {
  /** The button that opens the menu. */
  trigger: ReactElement<Record<string, unknown>>;
  children: ReactNode;
}

export function Menu({ trigger, children }: MenuProps) {
  const popup = useRef<HTMLDivElement>(null);
  return (
    <BaseMenu.Root
      modal={false}
      onOpenChangeComplete={(isOpen) => isOpen && focusChosenItem(popup.current)}
    >
      <BaseMenu.Trigger render={trigger} />
      <BaseMenu.Portal>
        <BaseMenu.Positioner className="positioner" sideOffset={4} align="start">
          <BaseMenu.Popup ref={popup} className="menu">
            {children}
          </BaseMenu.Popup>
        </BaseMenu.Positioner>
      </BaseMenu.Portal>
    </BaseMenu.Root>
  );
}

/** A menu that is longer than the screen opens where the choice is, and the arrow keys start there. */
function focusChosenItem(popup: HTMLElement | null): void {
  popup?.querySelector<HTMLElement>('[role="menuitemradio"][aria-checked="true"]')?.focus();
}

interface ActionsMenuProps {
  /** The resource that the actions are for. */
  name: string;
  isBusy?: boolean;
  children: ReactNode;
}

/** The menu of the actions on one resource of a list. */
export function ActionsMenu({ name, isBusy = false, children }: ActionsMenuProps) {
  return (
    <Menu
      trigger={
        <Button kind="quiet" isBusy={isBusy} aria-label={`Actions for ${name}`}>
          ⋯
        </Button>
      }
    >
      {children}
    </Menu>
  );
}

interface AnchoredMenuProps {
  /** Where the menu appears; null while it is closed. */
  anchor: Element | null;
  /** Names the menu for screen readers. */
  label: string;
  onClose: () => void;
  children: ReactNode;
}

/** A menu that many elements share, such as the rows of a long list. Its parent opens it. */
export function AnchoredMenu({ anchor, label, onClose, children }: AnchoredMenuProps) {
  return (
    <BaseMenu.Root
      modal={false}
      open={anchor !== null}
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <BaseMenu.Portal>
        <BaseMenu.Positioner className="positioner" anchor={anchor} sideOffset={4} align="end">
          <BaseMenu.Popup className="menu" aria-label={label}>
            {children}
          </BaseMenu.Popup>
        </BaseMenu.Positioner>
      </BaseMenu.Portal>
    </BaseMenu.Root>
  );
}

interface MenuItemProps {
  children: ReactNode;
  onClick: () => void;
  isDisabled?: boolean;
}

export function MenuItem({ children, onClick, isDisabled = false }: MenuItemProps) {
  return (
    <BaseMenu.Item className="menu-item" onClick={onClick} disabled={isDisabled}>
      {children}
    </BaseMenu.Item>
  );
}

interface MenuLinkProps {
  /** A link of the router, without text. */
  link: ReactElement<Record<string, unknown>>;
  children: ReactNode;
}

/** An item that leads to another page. */
export function MenuLink({ link, children }: MenuLinkProps) {
  return (
    <BaseMenu.LinkItem className="menu-item" render={link} closeOnClick>
      {children}
    </BaseMenu.LinkItem>
  );
}

interface MenuChoicesProps<Value extends string> {
  label: string;
  value: Value;
  /** Typing the beginning of a name moves to its choice. */
  choices: readonly { value: Value; name: string; detail?: ReactNode }[];
  onChoose: (value: Value) => void;
}

/** A group of which one item is chosen. */
export function MenuChoices<Value extends string>(props: MenuChoicesProps<Value>) {
  const { label, value, choices, onChoose } = props;
  return (
    <BaseMenu.Group>
      <BaseMenu.GroupLabel className="menu-label">{label}</BaseMenu.GroupLabel>
      <BaseMenu.RadioGroup value={value} onValueChange={(next: Value) => onChoose(next)}>
        {choices.map((choice) => (
          <BaseMenu.RadioItem
            key={choice.value}
            value={choice.value}
            className="menu-item"
            label={choice.name}
            closeOnClick
          >
            <BaseMenu.RadioItemIndicator className="menu-mark" keepMounted>
              ✓
            </BaseMenu.RadioItemIndicator>
            <span>
              <bdi>{choice.name}</bdi>
              {choice.detail !== undefined && <span className="hint">{choice.detail}</span>}
            </span>
          </BaseMenu.RadioItem>
        ))}
      </BaseMenu.RadioGroup>
    </BaseMenu.Group>
  );
}

export function MenuSeparator() {
  return <BaseMenu.Separator className="menu-separator" />;
}
