/** Menus that add rules to a policy. */
import { Button } from "../../../ui/button.tsx";
import { Icon } from "../../../ui/icon.tsx";
import { Menu, MenuItem } from "../../../ui/menu.tsx";
import {
  ACTION_KINDS,
  canAdd,
  createAction,
  findActionKind,
  type EditedAction,
} from "./action-kinds.ts";
import { addActions, type EditedPolicy } from "./policy-document.ts";
import { TEMPLATES } from "./templates.ts";

interface AddRuleProps {
  policy: EditedPolicy;
  onChange: (actions: EditedAction[]) => void;
}

export function AddRule({ policy, onChange }: AddRuleProps) {
  const { actions } = policy;
  return (
    <div className="actions">
      <Menu
        trigger={
          <Button>
            Add a rule
            <Icon name="down" />
          </Button>
        }
      >
        {ACTION_KINDS.map((kind) => (
          <MenuItem
            key={kind}
            isDisabled={!canAdd(actions, kind)}
            onClick={() => onChange([...actions, createAction(kind)])}
          >
            {findActionKind(kind)?.title}
          </MenuItem>
        ))}
      </Menu>
      <Menu
        trigger={
          <Button kind="quiet">
            Add from a template
            <Icon name="down" />
          </Button>
        }
      >
        {TEMPLATES.map(({ title, actions: added }) => (
          <MenuItem key={title} onClick={() => onChange(addActions(policy, added))}>
            {title}
          </MenuItem>
        ))}
      </Menu>
    </div>
  );
}

/** For a policy without rules. */
export function TemplateCards({ policy, onChange }: AddRuleProps) {
  return (
    <>
      <p>This tunnel forwards every request unchanged. Start from a template, or add a rule.</p>
      <ul className="policy-templates" aria-label="Templates">
        {TEMPLATES.map(({ title, about, actions }) => (
          <li key={title}>
            <button type="button" onClick={() => onChange(addActions(policy, actions))}>
              <strong>{title}</strong>
              <span className="hint">{about}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
