/** Light or dark: the system's choice until the person makes one, which is remembered. */
export type Theme = "light" | "dark";

const KEY = "adk-stream-theme";

/** Undefined where the system's choice holds. */
export function chosenTheme(): Theme | undefined {
  return asTheme(document.documentElement.dataset["theme"]);
}

export function chooseTheme(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Without storage the choice holds until the page is left.
  }
}

function rememberedTheme(): Theme | undefined {
  try {
    return asTheme(localStorage.getItem(KEY));
  } catch {
    return undefined;
  }
}

function asTheme(text: string | null | undefined): Theme | undefined {
  return text === "light" || text === "dark" ? text : undefined;
}

const remembered = rememberedTheme();
if (remembered !== undefined) document.documentElement.dataset["theme"] = remembered;
