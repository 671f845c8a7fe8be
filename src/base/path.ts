export type Path = readonly (string | number)[]

/** A place in a value as people write it: `tasks[0].title`, `headers["content-type"]`; empty for the root. Bounded. */
export function pathText(path: Path): string {
  let text = ''
  for (const key of path) {
    if (typeof key === 'string' && word.test(key)) text += text === '' ? key : `.${key}`
    else text += `[${typeof key === 'number' ? key : JSON.stringify(key.slice(0, maxLength))}]`
    if (text.length > maxLength) return `${text.slice(0, maxLength - 1).toWellFormed()}…`
  }
  return text
}

const word = /^[\p{L}_$][\p{L}\p{N}_$]*$/u
const maxLength = 200
