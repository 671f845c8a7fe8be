import type { Environment } from 'minijinja-js'

/** Texts to be rendered with the same values. Plain data: it may go to another thread. */
export interface Job {
  readonly texts: readonly string[]
  /** What the texts may include, by name. */
  readonly templates: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, string>>
  /** `strict`: a name without a value is an error. `chainable`: it is empty. */
  readonly undefinedBehavior: 'strict' | 'chainable'
  /** Digits that no value can guess: they are in the marks of what is held. */
  readonly mark: string
  /** How many steps the engine may take for all texts. */
  readonly fuel: number
  readonly mostCharacters: number
}

export type Rendered =
  | { readonly ok: true; readonly texts: readonly string[]; readonly held: readonly string[] }
  | { readonly ok: false; readonly message: string; readonly index: number }

/**
 * Renders all texts, or tells which one failed. The filter `legate_hold` keeps what it is given and puts a mark in its
 * place: private characters that no filter changes.
 *
 * Its source is also run in a thread, by itself: it may use nothing from around it, and the filter must not throw, for
 * that would break the engine.
 */
export function renderBatch(engine: { readonly Environment: typeof Environment }, job: Job): Rendered {
  const held: string[] = []
  const texts: string[] = []
  const environment = new engine.Environment()
  let undefinedAt = -1
  try {
    environment.undefinedBehavior = job.undefinedBehavior
    environment.keepTrailingNewline = true
    environment.fuel = job.fuel
    environment.addFilter('legate_hold', (value: unknown, isUndefined: unknown) => {
      if (isUndefined === true && undefinedAt === -1) undefinedAt = held.length
      held.push(String(value))
      return `\ue0f0${job.mark}:${held.length - 1}\ue0f1`
    })
    for (const [name, template] of Object.entries(job.templates)) {
      environment.addTemplate(name, `{% autoescape false %}${template}{% endautoescape %}`)
    }
    let characters = 0
    for (const text of job.texts) {
      const rendered = environment.renderStr(text, job.values)
      characters += rendered.length
      if (characters > job.mostCharacters) return { ok: false, message: 'too much text', index: texts.length }
      if (undefinedAt !== -1 && job.undefinedBehavior === 'strict') {
        return { ok: false, message: 'undefined value', index: texts.length }
      }
      texts.push(rendered)
    }
    return { ok: true, texts, held }
  } catch (error) {
    if (error instanceof Error && error.name !== 'Error') throw error
    return { ok: false, message: String(error instanceof Error ? error.message : error), index: texts.length }
  } finally {
    try {
      environment.free()
    } catch {
      // A broken engine cannot even let go; it is thrown away as a whole.
    }
  }
}
