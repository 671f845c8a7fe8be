/** Shorter ones would be found everywhere. */
const SHORTEST = 6

/** Takes the values of secrets out of texts that others will read: results, errors, descriptions. */
export class Redaction {
  private readonly values: readonly string[]

  constructor(values: Iterable<string>) {
    const long = new Set([...values].filter((value) => value.length >= SHORTEST))
    // The longest first: one may be a part of another.
    this.values = [...long].sort((a, b) => b.length - a.length)
  }

  clean(text: string): string {
    return this.values.reduce((left, value) => left.replaceAll(value, '[secret]'), text)
  }
}
