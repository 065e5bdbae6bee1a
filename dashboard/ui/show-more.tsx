/** Below a list that shows its first entries: a button that shows the next ones. */
import { Button } from "./button.tsx";
import { formatCount } from "./numbers.ts";

interface ShowMoreProps {
  /** How many entries are not shown. Without any, there is no button. */
  hiddenCount: number;
  /** How many more the button shows. */
  step: number;
  onShow: () => void;
}

export function ShowMore({ hiddenCount, step, onShow }: ShowMoreProps) {
  if (hiddenCount <= 0) return null;
  return (
    <div className="actions">
      <Button onClick={onShow}>Show {formatCount(Math.min(hiddenCount, step))} more</Button>
    </div>
  );
}
