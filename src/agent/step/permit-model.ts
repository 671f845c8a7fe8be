import { modelRequest, type Request, secretRequest, withPayload } from '../../grant/request.ts'
import type { Model } from '../../model/model.ts'
import { type Permission, type PersonsWords, permit, refuseStart } from '../../tool/permit.ts'
import type { NodeRun } from '../hooks/node-run.ts'

type Refusal = Exclude<Permission, { verdict: 'allow' }>

/**
 * Decides a call of a model. Where a definition or a call names the model, and the config file names its key, the key is decided
 * as a secret too. Undefined when it may be called.
 */
export function refuseModel(run: NodeRun, model: Model): Refusal | undefined {
  const request = modelRequest(model.id)
  const key = run.agent.isModelOfFile ? keyRequest(run, model) : undefined
  if (key === undefined) {
    const permission = permit(run, request, null)
    return permission.verdict === 'allow' ? undefined : permission
  }
  const { url, secret } = key
  const input = { model: model.id, ...(url === null ? {} : { url }), secrets: [secret.name] }
  return refuseStart(run, { requests: [request, secret], input, words: NO_WORDS })
}

const NO_WORDS: PersonsWords = { isAllowed: () => false, heard: () => undefined }

function keyRequest({ agent, home }: NodeRun, model: Model): { secret: Request; url: string | null } | undefined {
  // A model of the application has the key that its code gives it.
  if (home.agents.hasModelNamed(agent.inline?.model ?? '')) return undefined
  const key = model.namedKey?.() ?? null
  if (key === null) return undefined
  const { variable, url } = key
  return { secret: withPayload(secretRequest(variable), { model: model.id, url }), url }
}
