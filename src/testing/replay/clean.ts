import type { Json } from '../../base/json.ts'
import { Secrets } from '../../base/secrets/secrets.ts'
import { SECRET_MARK, withoutShapes } from '../../base/secrets/shapes.ts'
import { environmentSecrets } from '../../model/ai-sdk/known-secrets.ts'
import type { IdTokens } from './packed-request.ts'

export type Redact = (text: string) => string

const SECRET_KEY =
  /(?:(?:api|access|private|secret)[-_]?key|token|secret|password|passwd|passphrase|authorization|cookie|credentials?)$/i
/** The same of an object that is a text. */
const SECRET_FIELD =
  /(\\*"[\w-]*(?:(?:api|access|private|secret)[-_]?key|token|secret|password|passwd|passphrase|authorization|cookie|credentials?)\\*"\s*:\s*\\*")[^"\\]+/gi

/** Makes what may stand in a file, the same in every recording of the same run, from what was said. */
export class Cleaner {
  private readonly ids: IdTokens
  private readonly redact: Redact | undefined
  /** Most of a request was in the one before. */
  private readonly known: Map<string, string> = new Map()
  private readonly times: Map<string, string> = new Map()
  private readonly learned: Set<string> = new Set()
  /** What is looked for, and what it was made of. */
  private secrets: Secrets = new Secrets([])
  private values = ''

  constructor(ids: IdTokens, redact?: Redact) {
    this.ids = ids
    this.redact = redact
  }

  /** Values that must not stand in the file, from here on. */
  learn(values: readonly string[]): void {
    for (const value of values) this.learned.add(value)
  }

  /** Without secrets and without ids of ours. */
  answer(value: Json): Json {
    return mapped(value, { text: (text) => this.text(text), name: (name) => this.name(name) })
  }

  /** The same of a request: times in it are ours as well. */
  request(value: Json): Json {
    return mapped(value, { text: (text) => this.withoutTimes(this.text(text)), name: (name) => this.name(name) })
  }

  text(text: string): string {
    const secrets = this.inUse()
    const hidden = this.ids.hide(text)
    const known = this.known.get(hidden)
    if (known !== undefined) return known
    const own = this.redact === undefined ? hidden : this.redact(hidden)
    const clean = withoutShapes(secrets.clean(own.replaceAll(SECRET_FIELD, `$1${SECRET_MARK}`)))
    if (this.known.size >= MOST_KNOWN) this.known.clear()
    this.known.set(hidden, clean)
    return clean
  }

  /** A key of an object. Names of fields stay, whatever a function of the user's makes of texts. */
  private name(name: string): string {
    if (SHORT_NAME.test(name)) return name
    return FIELD.test(name) ? this.inUse().clean(name) : this.text(name)
  }

  private inUse(): Secrets {
    const all = [...environmentSecrets(), ...this.learned]
    const values = JSON.stringify(all)
    if (values === this.values) return this.secrets
    this.values = values
    this.secrets = new Secrets(all)
    this.known.clear()
    return this.secrets
  }

  private withoutTimes(text: string): string {
    return text.replaceAll(TIME, (time) => this.timeToken(time)).replaceAll(DURATION, '$1<duration>')
  }

  private timeToken(time: string): string {
    const token = this.times.get(time) ?? `<time:${this.times.size + 1}>`
    this.times.set(time, token)
    return token
  }
}

const MOST_KNOWN = 10_000
const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g
/** As results of delegations tell them. */
const DURATION = /("(?:duration_ms|durationMs|totalDurationMs)":\s*|\*\*(?:Duration|Elapsed):\*\* |\bidle )\d+[sm]?/g

interface Change {
  text(text: string): string
  name(name: string): string
}

function mapped(value: Json, change: Change, key = ''): Json {
  if (typeof value === 'string') return SECRET_KEY.test(key) && isSecret(value) ? SECRET_MARK : change.text(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => mapped(item as Json, change))
  const names = new Names(Object.keys(value))
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      names.free(change.name(name), name),
      mapped(item as Json, change, name),
    ]),
  )
}

/** A name of a field, of ours or of a schema. */
const FIELD = /^[a-zA-Z$]{1,20}$/
/** Nothing that is as short as this is taken for a secret that is a name. */
const SHORT_NAME = /^[a-zA-Z$]{1,11}$/

/** Keys stay apart: a mark with a number stands for any text as one without does. */
class Names {
  private readonly taken: Set<string>
  private readonly counts: Map<string, number> = new Map()

  constructor(names: readonly string[]) {
    this.taken = new Set(names)
  }

  free(clean: string, name: string): string {
    if (clean === name) return name
    let key = clean
    while (this.taken.has(key)) {
      const count = (this.counts.get(clean) ?? 1) + 1
      this.counts.set(clean, count)
      key = `${clean}${SECRET_MARK}#${count}`
    }
    this.taken.add(key)
    return key
  }
}

/** Words about a secret are none. */
function isSecret(value: string): boolean {
  return value !== '' && !/\s/.test(value)
}
