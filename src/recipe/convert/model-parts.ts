import { isLegateError } from '../../base/error.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import { modelOf } from '../agent-file/model-name.ts'

interface ModelParts {
  readonly provider: string | null
  readonly model: string | null
}

/** Model and provider as a dialect that has a word for both writes them: in its own as they are, else in full. */
export function modelParts(agent: AgentFile, dialect: string): ModelParts {
  const { provider, model } = agent
  if (agent.dialect === dialect || (provider !== null && model !== null)) return { provider, model }
  const whole = wholeModel(agent)
  if (whole === null) return { provider, model: null }
  const slash = whole.indexOf('/')
  return { provider: whole.slice(0, slash), model: whole.slice(slash + 1) }
}

/** As `provider/model`; null where there is none, or nobody knows whose it is. */
export function wholeModel(agent: AgentFile): string | null {
  try {
    return modelOf(agent)
  } catch (error) {
    if (isLegateError(error)) return null
    throw error
  }
}

/** Providers whose models a dialect names without them; `all` where it names the provider too. */
export type ModelNaming = 'all' | 'as read' | readonly string[]

/** What a dialect writes for the model of an agent; undefined where it has no word for it. */
export function modelWord(agent: AgentFile, dialect: string, naming: ModelNaming): string | undefined {
  if (agent.dialect === dialect || naming === 'as read') return agent.model ?? undefined
  const whole = wholeModel(agent)
  if (whole === null || naming === 'all') return whole ?? undefined
  const provider = naming.find((one) => whole.startsWith(`${one}/`))
  return provider === undefined ? undefined : whole.slice(provider.length + 1)
}
