/** The rules of a policy as a form, and the menus that add rules. */
import { Form } from "@base-ui/react/form";
import { useEffect, useRef } from "react";
import { Button } from "../../../ui/button.tsx";
import { Icon } from "../../../ui/icon.tsx";
import { ActionFields } from "./action-fields.tsx";
import { AddRule, TemplateCards } from "./add-rule.tsx";
import { findActionKind, type EditedAction } from "./action-kinds.ts";
import type { EditedPolicy } from "./policy-document.ts";
import type { FieldError } from "../../../api/request.ts";

interface RuleListProps {
  policy: EditedPolicy;
  errors: readonly FieldError[];
  canChange: boolean;
  onChange: (actions: EditedAction[]) => void;
}

const DIRECTIONS = ["up", "down"] as const;
type Direction = (typeof DIRECTIONS)[number];

export function RuleList({ policy, errors, canChange, onChange }: RuleListProps) {
  const { actions } = policy;
  const list = useRef<HTMLOListElement>(null);
  /** A selector. When the list has changed, its first match gets the focus, so that the focus follows the user's change. */
  const focusNext = useRef("");
  useEffect(() => {
    if (focusNext.current === "") return;
    const next = list.current?.querySelector<HTMLElement>(focusNext.current);
    focusNext.current = "";
    next?.focus();
  }, [actions]);

  function move(index: number, name: Direction): void {
    const moved = [...actions];
    const target = findTarget(actions, index, name);
    moved.splice(target, 0, ...moved.splice(index, 1));
    const isLast = findTarget(moved, target, name) === -1;
    focusNext.current = `li:nth-child(${target + 1}) button${isLast ? ":enabled" : `[data-move="${name}"]`}`;
    onChange(moved);
  }

  function remove(index: number): void {
    focusNext.current = `li:nth-child(${Math.max(1, index)}) [data-remove]`;
    onChange(actions.filter((_, other) => other !== index));
  }

  /** New rules are at the end. */
  function add(all: EditedAction[]): void {
    focusNext.current = `li:nth-child(${actions.length + 1}) :is(input, textarea)`;
    onChange(all);
  }

  return (
    <>
      {actions.length === 0 && canChange && <TemplateCards policy={policy} onChange={add} />}
      {actions.length === 0 && !canChange && <p>This tunnel has no traffic policy.</p>}
      <Form errors={toFieldErrors(errors)} onSubmit={(event) => event.preventDefault()}>
        <fieldset className="policy-rules" disabled={!canChange}>
          <legend className="hidden-text">Rules</legend>
          <ol ref={list}>
            {actions.map((action, index) => (
              <li key={index}>
                <h3>
                  <span className="hint">{index + 1}</span> {getTitle(action)}
                </h3>
                <div className="policy-fields">
                  <ActionFields
                    action={action}
                    index={index}
                    isFirstOfKind={actions.findIndex(({ kind }) => kind === action.kind) === index}
                    onChange={(changed) => onChange(actions.with(index, changed))}
                  />
                </div>
                {canChange && (
                  <div className="actions">
                    {DIRECTIONS.map((name) => (
                      <Button
                        key={name}
                        kind="quiet"
                        data-move={name}
                        aria-label={`Move rule ${index + 1} ${name}`}
                        disabled={findTarget(actions, index, name) === -1}
                        onClick={() => move(index, name)}
                      >
                        <Icon name={name} />
                      </Button>
                    ))}
                    <Button
                      kind="quiet"
                      data-remove
                      aria-label={`Remove rule ${index + 1}`}
                      onClick={() => remove(index)}
                    >
                      <Icon name="close" />
                    </Button>
                  </div>
                )}
              </li>
            ))}
          </ol>
        </fieldset>
      </Form>
      {canChange && <AddRule policy={policy} onChange={add} />}
    </>
  );
}

/** The next rule of the same kind: the order of the kinds is fixed. @returns -1 if there is none. */
function findTarget(rules: readonly EditedAction[], index: number, name: Direction): number {
  const isSameKind = ({ kind }: EditedAction) => kind === rules[index]!.kind;
  return name === "up"
    ? rules.slice(0, index).findLastIndex(isSameKind)
    : rules.findIndex((rule, other) => other > index && isSameKind(rule));
}

function getTitle({ kind }: EditedAction): string {
  return findActionKind(kind)?.title ?? kind;
}

/** By the names of the fields. An error of an entry is shown at its list. */
function toFieldErrors(errors: readonly FieldError[]): Record<string, string> {
  const byField: Record<string, string> = {};
  for (const { path, message } of errors) {
    const name = /^actions\[\d+\]\.\w+/.exec(path)?.[0];
    if (name !== undefined) byField[name] ??= `It ${message}.`;
  }
  return byField;
}
