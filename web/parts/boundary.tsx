// Something that cannot be drawn takes nothing else with it.

import { Component, type ReactNode } from 'react'
import { messageOf } from '../data/client.ts'
import { Shape } from './state.tsx'

interface BoundaryProps {
  /** Names what is missing: `This row`. */
  readonly what: string
  readonly children: ReactNode
}

interface BoundaryState {
  readonly error: unknown
  readonly isBroken: boolean
}

/** Around each page, card and row: where drawing fails, a note stands in its place. */
export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { error: null, isBroken: false }

  static getDerivedStateFromError(error: unknown): BoundaryState {
    return { error, isBroken: true }
  }

  override render(): ReactNode {
    const { what, children } = this.props
    if (!this.state.isBroken) return children
    return (
      <div className="note note-failed" role="alert">
        <Shape state="failed" isDecoration />
        <span className="grow">
          {what} cannot be shown: {messageOf(this.state.error).slice(0, 300)}
        </span>
      </div>
    )
  }
}
