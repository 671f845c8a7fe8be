import fc from 'fast-check'

/** Text of any characters. As `unit: 'binary'`, which first makes a map of all there are: that takes a second and 100 MB. */
export function anyUnicode(length: { readonly minLength?: number; readonly maxLength?: number } = {}) {
  return fc.string({ unit: anyCharacter, ...length })
}

const SURROGATES = { from: 0xd800, count: 0x800 }

const anyCharacter = fc.nat(0x10_ffff - SURROGATES.count).map(characterAt, indexOf)

function characterAt(index: number): string {
  return String.fromCodePoint(index < SURROGATES.from ? index : index + SURROGATES.count)
}

/** Asked for whatever may be text: what is no character of its own has to be refused. */
function indexOf(value: unknown): number {
  const code = typeof value === 'string' ? (value.codePointAt(0) ?? -1) : -1
  const index = code < SURROGATES.from ? code : code - SURROGATES.count
  if (index < 0 || characterAt(index) !== value) throw new Error('not a character')
  return index
}
