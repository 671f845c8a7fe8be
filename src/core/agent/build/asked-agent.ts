import { toModel } from '../../model/named/to-model.ts'
import type { Prompt } from '../../prompt/prompt.ts'
import { type AgentCore, markAgent } from '../definition/agent.ts'
import type { ExtensionCore } from '../definition/extension.ts'
import { type Repair, readRepair } from '../definition/repair.ts'

const bases: WeakMap<AgentCore, AgentCore> = new WeakMap()

/**
 * The agent for one request: the prompt's output, model and settings replace its own. It is still the same agent: its
 * name, its hash and its grants do not change.
 */
export function agentForRequest(
  agent: AgentCore,
  prompt: Prompt,
  {
    extensions = [],
    repair,
  }: { readonly extensions?: readonly ExtensionCore[]; readonly repair?: Repair | undefined } = {},
): AgentCore {
  const { output, model, settings, providerOptions } = prompt.toRequest()
  const isOther = describesOutput(prompt)
  const answer = isOther ? output : agent.output
  const own = model === null ? agent.model : (toModel(model) ?? agent.model)
  const asked: AgentCore = markAgent({
    ...agent,
    asked: prompt,
    model: own,
    settings: { ...agent.settings, ...settings, ...forProvider(agent, own, providerOptions) },
    output: answer,
    repair:
      readRepair(repair, answer, `a request to "${agent.name}"`) ??
      (isOther ? withoutEnsure(agent.repair) : agent.repair),
    eager: isOther ? null : agent.eager,
    extensions: extensions.length === 0 ? agent.extensions : [...extensions, ...agent.extensions],
  })
  bases.set(asked, baseOf(agent))
  return asked
}

/** The ensured fields of an agent's own answer do not apply to another answer. */
function withoutEnsure(repair: Repair | null): Repair | null {
  return repair === null ? null : { ...repair, ensure: [] }
}

/** The agent without the changes of a request. */
export function baseOf(agent: AgentCore): AgentCore {
  return bases.get(agent) ?? agent
}

/** True when the prompt itself describes the answer. */
export function describesOutput(prompt: Prompt): boolean {
  return prompt.get('output') !== undefined || prompt.get('output_format') !== undefined
}

/** Options that are no known setting go to the model's own provider. */
function forProvider(
  { settings }: AgentCore,
  model: AgentCore['model'],
  options: ReturnType<Prompt['toRequest']>['providerOptions'],
): Pick<AgentCore['settings'], 'providerOptions'> {
  if (Object.keys(options).length === 0) return {}
  const [provider = ''] = (model?.id ?? '').split('/')
  if (provider === '') return {}
  const given = settings.providerOptions?.[provider]
  const before = typeof given === 'object' && given !== null && !Array.isArray(given) ? given : {}
  return { providerOptions: { ...settings.providerOptions, [provider]: { ...before, ...options } } }
}
