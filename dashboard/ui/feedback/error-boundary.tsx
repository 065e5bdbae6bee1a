/** Keeps an error of one part of the page from taking down the rest of it. */
import { Component, type ReactNode } from "react";
import { ErrorNotice } from "./error-notice.tsx";

interface Props {
  children: ReactNode;
}

interface State {
  error: unknown;
  hasFailed: boolean;
}

export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: undefined, hasFailed: false };

  static getDerivedStateFromError(error: unknown): State {
    return { error, hasFailed: true };
  }

  override render(): ReactNode {
    const { error, hasFailed } = this.state;
    if (!hasFailed) return this.props.children;
    const retry = () => this.setState({ error: undefined, hasFailed: false });
    return <ErrorNotice error={error} onRetry={retry} />;
  }
}
