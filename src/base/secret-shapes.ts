/** Stands where a secret was. */
export const SECRET_MARK = '***'

/** A text without what looks like a secret. Takes time in proportion to the text. */
export function withoutShapes(text: string): string {
  if (text.length < SHORTEST) return text
  const keyless = KEYS.reduce((left, key) => left.replaceAll(key, SECRET_MARK), text)
  return keyless
    .replaceAll(WEB_TOKEN, (whole: string, rest: string | undefined) => (rest === undefined ? whole : SECRET_MARK))
    .replaceAll(USER_INFO, `//${SECRET_MARK}@`)
    .replaceAll(PRIVATE_KEY, SECRET_MARK)
    .replaceAll(/\b(Bearer|Basic)\s+[^\s"']+/gi, `$1 ${SECRET_MARK}`)
    .replaceAll(/((?:key|token|secret|password|passwd|_pat|_pass|_pwd|sig)=["']?)[^&\s"']+/gi, `$1${SECRET_MARK}`)
    .replaceAll(
      /((?:key|token|secret|password)["']?\s*:\s*["']?)(?=[-_.~+/=*A-Za-z]*\d)[-_.~+/=*A-Za-z0-9]{16,}/gi,
      `$1${SECRET_MARK}`,
    )
}

/** A command line, or a part of one, without keys: only those that are a word of their own, and no part of a path. */
export function withoutKeys(text: string): string {
  return KEYS.reduce((left, key) => left.replace(key, (found, ...rest) => markedWord(found, left, rest)), text)
}

/** What a pattern found, at the one number among `rest`. */
function markedWord(found: string, text: string, rest: readonly unknown[]): string {
  const at = rest.find((value) => typeof value === 'number') as number
  const isPart = PART_OF_WORD.test(text.charAt(at - 1)) || PART_OF_WORD.test(text.charAt(at + found.length))
  return isPart ? found : SECRET_MARK
}

const PART_OF_WORD = /[\w.~/*-]/
/** `//a@` */
const SHORTEST = 4

/** Does this value hold a key or the password of an address? */
export function looksSecret(value: string): boolean {
  if ([PASSWORD, PRIVATE_KEY, ...KEYS].some((shape) => value.search(shape) !== -1)) return true
  return Array.from(value.matchAll(WEB_TOKEN)).some(([, rest]) => rest !== undefined)
}

const USER_INFO = /\/\/[^\s/?#"']*@/g
const PASSWORD = /\/\/[^\s/?#"'@:]*:[^\s/?#"'@]+@/
const PRIVATE_KEY =
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:[^"-]|-(?!----))*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g

/** Keys as those who give them out write them. */
const KEYS: readonly RegExp[] = [
  // OpenAI, Anthropic, Stripe, Groq, xAI, Perplexity
  /(?<![A-Za-z0-9])(?:sk|pk|rk|gsk|xai|pplx)[-_][-_A-Za-z0-9*]{8,}/g,
  // Google
  /(?<![A-Za-z0-9])(?:AIza[-_A-Za-z0-9*]{8,}|(?:ya29\.|GOCSPX-)[-_A-Za-z0-9]{16,})/g,
  // GitHub, GitLab
  /(?<![A-Za-z0-9])(?:gh[opusr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|gl[a-z]{2,5}-[-_.A-Za-z0-9]{20,})/g,
  // AWS
  /(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}/g,
  // Slack
  /(?<![A-Za-z0-9])(?:xox[a-z](?:\.xox[a-z])?|xapp)-[-A-Za-z0-9]{10,}/g,
  // Hugging Face, npm, Replicate, Linear, Notion
  /(?<![A-Za-z0-9])(?:hf|npm|r8|lin_api|ntn)_[A-Za-z0-9]{16,}/g,
  // PyPI, Docker, DigitalOcean, Databricks, Vault
  /(?<![A-Za-z0-9])(?:pypi-|dckr_pat_|do[opr]_v1_|dapi(?=[a-f0-9]{32})|hv[sbr]\.)[-_A-Za-z0-9]{16,}/g,
]

/**
 * JSON web tokens and those of SendGrid, if there is more behind the first dot. Without it the run of characters is passed over
 * whole: it may hold the beginnings of a thousand others, none of which has more.
 */
const WEB_TOKEN =
  /(?<![A-Za-z0-9])(?:eyJ[-_A-Za-z0-9]{8,}|SG\.[-_A-Za-z0-9]{16,})(\.[-_A-Za-z0-9]{8,}(?:\.[-_A-Za-z0-9]*){0,3})?/g
