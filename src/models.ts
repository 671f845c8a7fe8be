import type { AgentCore } from './agent/agent.ts'
import type { Model } from './model/model.ts'
import { toModel } from './model/to-model.ts'
import type { RuntimeOptions } from './options.ts'
import type { Logger } from './tool/tool.ts'

/** The models of an application, and the one for agents that name none. */
export class Models {
  /** What was given for all agents, or was found in the environment; null until then. */
  standard: Model | null
  private readonly own: ReadonlyMap<string, Model>
  private readonly logger: Logger

  constructor({ model, models = {} }: Pick<RuntimeOptions, 'model' | 'models'>, logger: Logger) {
    this.logger = logger
    this.standard = toModel(model) ?? null
    this.own = new Map(Object.entries(models).flatMap(([name, one]) => [[name, toModel(one)]] as [string, Model][]))
  }

  has(name: string): boolean {
    return this.own.has(name)
  }

  /** A model by its name: the application's own, else that of a provider. */
  named(name: string): Model | undefined {
    return this.own.get(name) ?? toModel(name)
  }

  /** An agent's own: where a file names it, the application may have one of that name. */
  of(agent: Pick<AgentCore, 'model' | 'inline'>): Model | null {
    const name = agent.inline?.model ?? null
    return (name === null ? undefined : this.own.get(name)) ?? agent.model
  }

  /** Has an agent that nobody delegates to a model, or does it need none? */
  hasFor(agent: Pick<AgentCore, 'model' | 'reply'>): boolean {
    return agent.model !== null || this.standard !== null || agent.reply !== null
  }

  /** Looks for the model where nobody named one. Throws a DefinitionError when there is none. */
  async find(): Promise<void> {
    const { defaultModel } = await import('./model/named/default-model.ts')
    this.standard = await defaultModel()
    this.logger.info(`Neither agent nor runtime names a model: ${this.standard.id} is used.`)
  }
}
