/** Does an address have gaps? */
export function isGap(uri: string): boolean {
  return uri.includes('{')
}

/** The values of the gaps of a template in an address; undefined where it does not fit. A gap takes anything but a slash. */
export function matchResource(template: string, uri: string): Readonly<Record<string, string>> | undefined {
  if (!isGap(template)) return template === uri ? {} : undefined
  const [wanted, given] = [template.split('/'), uri.split('/')]
  if (wanted.length !== given.length) return undefined
  const gaps: Record<string, string> = {}
  for (const [at, part] of wanted.entries()) {
    const value = given[at] ?? ''
    const name = /^\{(\w+)\}$/.exec(part)?.[1]
    if (name === undefined ? value !== part : value === '') return undefined
    if (name !== undefined) gaps[name] = value
  }
  return gaps
}
