/** How a dialect writes variables beside `${NAME}`: `anywhere` has `$NAME` inside of texts, `alone` only as the whole text. */
export type Spelling = 'anywhere' | 'alone'

export interface FilledText {
  /** With `${NAME}` and `${NAME:-other}` only. */
  readonly text: string
  /** What stands for something that is no variable, such as `${input:token}`. */
  readonly unknown: readonly string[]
}

/** The variables of a text in the one form that is filled in when a server is started. */
export function filledText(given: string, spelling: Spelling): FilledText {
  const unknown: string[] = []
  const braced = given.replace(WRITTEN, (whole: string, ...groups: (string | undefined)[]) => {
    const [action, inner, opencode] = groups
    const name = action?.trim().replace(/^(?:secrets|vars|env)\./, '') ?? opencode ?? inner?.replace(/^env:/, '') ?? ''
    if (/^\w+(?::-[^{}]*)?$/.test(name)) return `\${${name}}`
    unknown.push(whole)
    return whole
  })
  const bare = spelling === 'anywhere' ? BARE : BARE_ALONE
  return { text: braced.replace(bare, (_, name: string) => `\${${name}}`), unknown }
}

/** `${{ secrets.NAME }}`, `${NAME}`, `${env:NAME}`, `{env:NAME}`. */
const WRITTEN = /\$\{\{([^{}]*)\}\}|\$\{([^{}]*)\}|\{env:([^{}]*)\}/g
const BARE = /\$([A-Za-z_]\w*)/g
const BARE_ALONE = /^\$([A-Za-z_]\w*)$/
