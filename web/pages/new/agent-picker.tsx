import { type ReactNode, useId } from 'react'
import type { AgentInfo } from '../../data/types.ts'
import { navigate } from '../../window/router.ts'
import { initials } from '../../words/format.ts'

interface PickerProps {
  readonly agents: readonly AgentInfo[]
  readonly chosen: AgentInfo
}

/** Chooses an agent. The address names it, so that a form can be linked to. */
export function AgentPicker({ agents, chosen }: PickerProps): ReactNode {
  const id = useId()
  return (
    <div className="field">
      <label className="name" htmlFor={id}>
        Agent
      </label>
      <div className="pick">
        <span className="av" aria-hidden="true">
          {initials(chosen.name)}
        </span>
        <span className="grow">
          <select
            id={id}
            className="in"
            value={chosen.name}
            onChange={(event) => navigate(`/new/${encodeURIComponent(event.target.value)}`, { replace: true })}
          >
            {agents.map(({ name, source }) => (
              <option key={name} value={name}>
                {source === 'file' ? `${name} (from a file)` : name}
              </option>
            ))}
          </select>
          <span className="hint dim">{chosen.description === '' ? 'No description.' : chosen.description}</span>
        </span>
      </div>
    </div>
  )
}
