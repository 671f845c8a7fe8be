import type { Extension } from '../../agent/agent.ts'
import { extension } from '../../agent/hooks/define-extension.ts'
import { type PlannerSettings, plannerMark } from '../../agent/planner/settings.ts'
import type { ToolLog } from '../../agent/planner/tool-logs.ts'
import { DefinitionError } from '../../base/error.ts'

export interface PlannerOptions {
  /**
   * `planner`: a model call of its own says which tool is needed, and the answer is given with what the tool found: for
   * models that cannot call tools. `native`: the model calls them. `auto`, the default: `native`, unless the model says
   * that it cannot (`nativeTools: false`).
   */
  readonly strategy?: PlannerSettings['strategy']
  /** How many tools may be planned for one answer, one after the other. Default 1. */
  readonly maxRounds?: number
  /** Tells each use of a tool to the logger too, and as an event `tool_log`. */
  readonly showToolLogs?: boolean
}

/**
 * How an agent uses its tools, whatever its model can do. Each use is an event `tool` before the answer's first, and in
 * `outcome.extra.tool_logs`. Plan and call are nodes of the run, so that nothing is repeated after a crash.
 */
export function planner(options: PlannerOptions = {}): Extension<'planner'> {
  const { strategy = 'auto', maxRounds = 1, showToolLogs = false } = options
  if (!['auto', 'native', 'planner'].includes(strategy)) {
    refuse(`strategy is "auto", "native" or "planner", not ${JSON.stringify(strategy)}.`)
  }
  if (!Number.isSafeInteger(maxRounds) || maxRounds < 1) refuse('maxRounds is a whole number of at least 1.')
  const made = extension({
    name: 'planner',
    state: () => ({ told: 0 }),
    hooks: {
      *onStreamStart({ purpose, extra, state, logger }) {
        if (purpose === 'plan') return
        const logs = (extra['tool_logs'] ?? []) as unknown as readonly ToolLog[]
        for (const data of logs.slice(state.told)) {
          yield { name: 'tool', data }
          if (!showToolLogs) continue
          logger.info(`${data.tool_name}: ${data.purpose}`, data)
          yield { name: 'tool_log', data }
        }
        state.told = logs.length
      },
    },
  })
  return Object.freeze({ ...made, [plannerMark]: { strategy, maxRounds } })
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `planner(): ${message}`)
}
