import type { AnyAgent } from '../../agent/agent.ts'
import { ModelError } from '../../base/error.ts'
import type { Model } from '../../model/model.ts'
import { checkOptions, type RuntimeOptions, warningLogger } from '../../options.ts'
import { createRuntime, type Runtime } from '../../runtime.ts'
import { Player } from './player.ts'
import { type RecordedScript, recordedScript } from './recorded-script.ts'
import { readRecording } from './recording-file.ts'

export interface Replay extends Runtime {
  /** Throws when something was not as it was recorded, with the difference, or was recorded and not asked for. */
  assertComplete(): void
}

/**
 * A runtime in which models and tools say what they said when the file was recorded. Neither is called: nothing leaves the
 * process. `options` are the runtime's; with `agents`, also those that a tool has started from inside.
 */
export function replay(file: string, options: RuntimeOptions = {}): Replay {
  checkOptions(options)
  const script = recordedScript(readRecording(file))
  const runtime = createRuntime({ model: standIn(script), ...options })
  const agents = new Map((options.agents ?? []).map((agent: AnyAgent) => [agent.name, agent]))
  const logger = options.logger ?? warningLogger
  const { store } = runtime
  const player = new Player({ file, script, store, agents, report: (message) => logger.error(message) })
  runtime.useTape(player)
  return Object.assign(runtime, { assertComplete: () => player.assertComplete() })
}

/** For agents that name no model: none is looked for. */
function standIn({ entries }: RecordedScript): Model {
  const [first] = entries.flatMap(({ line }) => ('model' in line ? [line.model] : []))
  return {
    id: first ?? 'recorded/model',
    stream: () => {
      throw new ModelError('model', 'A model of a recording can only be replayed.')
    },
  }
}
