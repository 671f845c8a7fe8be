import type { Extension } from '../agent/definition/agent.ts'
import type { BeforeTool, HookedCall } from '../agent/definition/hooks.ts'
import { type PlanFunction, type PlannerSettings, plannerMark } from '../agent/definition/planner-settings.ts'
import { extension } from '../agent/hooks/hook-set.ts'
import type { ToolLog } from '../agent/planner/tool-logs.ts'
import type { Json } from '../base/json.ts'
import { code, flag, int, oneOf, readOptions } from '../base/options.ts'

export interface PlannerOptions {
  /**
   * `planner`: a separate model call chooses the tools, and the answer is written with their results: for models that
   * cannot call tools. `native`: the model calls tools itself. `auto` (default): `native`, unless the model sets
   * `nativeTools: false`.
   */
  readonly strategy?: PlannerSettings['strategy']
  /** How many rounds of planning one answer may take. Default 1. */
  readonly maxRounds?: number
  /** How many tools one round may plan, to run at the same time. Default 1. */
  readonly parallel?: number
  /** How many planned tools run at the same time. Default: all. */
  readonly concurrency?: number
  /**
   * Time limit of all rounds of a run together. Afterwards the agent answers with the results it has. Default: none.
   */
  readonly timeoutMs?: number
  /** Plans in place of the model: returns the tools to call, or none to finish. */
  readonly plan?: PlanFunction
  /** Runs in place of a planned tool. If it returns undefined, the tool itself runs. */
  readonly execute?: (call: HookedCall) => Json | undefined | Promise<Json | undefined>
  /** Returns the planned commands as the answer, as text and in `outcome.extra.tool_commands`, and calls no tool. */
  readonly planOnly?: boolean
  /** Also reports each use of a tool to the logger and as an event `tool_log`. */
  readonly showToolLogs?: boolean
}

/**
 * Decides how an agent uses its tools, whatever its model can do. Each use is an event `tool` before the first of the
 * answer, and an entry of `outcome.extra.tool_logs`. Plans and calls are nodes of the run, so a crash repeats nothing.
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
