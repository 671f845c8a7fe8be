import type { Path } from '../base/path.ts'

/** A path as people write it: `tasks[0].title`, `headers["content-type"]`; empty for the root. */
export function dotPath(path: Path): string {
  return spell(path, (index) => `[${index}]`)
}

/** The same with `[*]` for every index. */
export function wildcardPath(path: Path): string {
  return spell(path, () => '[*]')
}

/** A JSON pointer, RFC 6901: `/tasks/0/title`; empty for the root. */
export function slashPath(path: Path): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

const word = /^[\p{L}_$][\p{L}\p{N}_$]*$/u

function spell(path: Path, spellIndex: (index: number) => string): string {
  let text = ''
  for (const key of path) {
    if (typeof key === 'number') text += spellIndex(key)
    else if (word.test(key)) text += text === '' ? key : `.${key}`
    else text += `[${JSON.stringify(key)}]`
  }
  return text
}
