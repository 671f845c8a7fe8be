import { messageOf } from '../../base/error.ts'
import { usersModel } from '../../model/named/default-model.ts'
import { wholeName } from '../../model/named/model-names.ts'
import { keyedModel, providerTrouble } from '../../model/named/provider-default.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import { modelOf } from '../agent-file/model-name.ts'
import { noticesOf } from '../text/notice.ts'

/** Which model a file would run with here, as far as is known without asking a provider. */
export interface ModelUse {
  /** `provider/model`. Null where nobody names one, nobody knows whose it is, or it depends on a parameter. */
  readonly name: string | null
  /** Who names it: `the file`, `LEGATE_MODEL`, or `model in` the config file; null where nobody does. */
  readonly where: string | null
  /** What keeps it from being used, and what to set; null where nothing is known to. */
  readonly trouble: string | null
}

export function modelUse(file: Pick<AgentFile, 'model' | 'provider' | 'file'>): ModelUse {
  if (/\{[{%]/.test(`${file.provider} ${file.model}`)) return { name: null, where: 'the file', trouble: null }
  try {
    const own = modelOf(file)
    const said = own === null ? usersModel() : { name: own, where: 'the file' }
    return said === undefined ? nobody() : { ...said, ...known(said.name) }
  } catch (error) {
    const [notice] = noticesOf(error)
    const trouble = notice === undefined ? messageOf(error) : `${notice.message}. ${notice.hint ?? ''}`.trim()
    return { name: null, where: null, trouble }
  }
}

function known(said: string): Pick<ModelUse, 'name' | 'trouble'> {
  const name = wholeName(said)
  if (name === undefined) return { name: null, trouble: `"${said}" is no "provider/model" and no alias` }
  const why = providerTrouble(name.slice(0, name.indexOf('/')))
  return { name, trouble: why === undefined ? null : `${name}: ${why}` }
}

function nobody(): ModelUse {
  const model = keyedModel()
  const trouble = model === undefined ? NOTHING : `no model is named: set LEGATE_MODEL=${model}`
  return { name: null, where: null, trouble }
}

/** Whether an Ollama answers is known when it is asked. */
const NOTHING =
  'no model is named and no key is set: set LEGATE_MODEL=provider/model and the key of the provider, or start Ollama'
