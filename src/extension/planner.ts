import type { Extension } from '../agent/definition/agent.ts'
import type { BeforeTool, HookedCall } from '../agent/definition/hooks.ts'
import { type PlanFunction, type PlannerSettings, plannerMark } from '../agent/definition/planner-settings.ts'
import { extension } from '../agent/hooks/hook-set.ts'
import type { ToolLog } from '../agent/planner/tool-logs.ts'
import type { Json } from '../base/json.ts'
import { code, flag, int, oneOf, readOptions } from '../base/options.ts'

export interface PlannerOptions {
  /**
   * `planner`: a model call of its own says which tool is needed, and the answer is given with what the tool found: for
   * models that cannot call tools. `native`: the model calls them. `auto`, the default: `native`, unless the model says
   * that it cannot (`nativeTools: false`).
   */
  readonly strategy?: PlannerSettings['strategy']
  /** How many tools may be planned for one answer, one after the other. Default 1. */
  readonly maxRounds?: number
  /** How many tools one round may plan, to be used at the same time. Default 1. */
  readonly parallel?: number
  /** How many of them run at the same time. Default: all. */
  readonly concurrency?: number
  /** How long all rounds of a run may take together: then it answers with what it has. Default: no limit. */
  readonly timeoutMs?: number
  /** Plans instead of the model: which tools are needed; none for no more. */
  readonly plan?: PlanFunction
  /** Carries out what was planned instead of the tool; undefined: the tool itself runs. */
  readonly execute?: (call: HookedCall) => Json | undefined | Promise<Json | undefined>
  /** The commands are the answer, as text and in `outcome.extra.tool_commands`: nothing is called. */
  readonly planOnly?: boolean
  /** Tells each use of a tool to the logger too, and as an event `tool_log`. */
  readonly showToolLogs?: boolean
}

/**
 * How an agent uses its tools, whatever its model can do. Each use is an event `tool` before the answer's first, and in
 * `outcome.extra.tool_logs`. Plan and call are nodes of the run, so that nothing is repeated after a crash.
 */
export function planner(options: PlannerOptions = {}): Extension<'planner'> {
  readOptions('planner()', options, OPTIONS)
  const { strategy = 'auto', maxRounds = 1, showToolLogs = false } = options
  const { parallel = 1, concurrency = null, timeoutMs = null, plan = null, execute, planOnly = false } = options
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
      ...(execute === undefined ? {} : { beforeTool: carriedOut(execute) }),
    },
  })
  const settings: PlannerSettings = { strategy, maxRounds, parallel, concurrency, timeoutMs, plan, planOnly }
  return Object.freeze({ ...made, [plannerMark]: settings })
}

function carriedOut(execute: NonNullable<PlannerOptions['execute']>): (call: HookedCall) => Promise<BeforeTool> {
  return async (call) => {
    const answer = await execute(call)
    return answer === undefined ? undefined : { answer }
  }
}

const OPTIONS = {
  strategy: oneOf('auto', 'native', 'planner'),
  maxRounds: int(1),
  parallel: int(1),
  concurrency: int(1),
  timeoutMs: int(1),
  plan: code,
  execute: code,
  planOnly: flag,
  showToolLogs: flag,
}
