/** A name as systems compare it that ignore case, and the marks and forms of characters that some of them ignore too. */
export function foldedName(name: string): string {
  if (PLAIN.test(name)) return name.toLowerCase()
  return name.normalize('NFKD').replace(IGNORED, '').toUpperCase().toLowerCase()
}

const PLAIN = /^[\x20-\x7e]*$/
const IGNORED = /\p{Default_Ignorable_Code_Point}/gu
