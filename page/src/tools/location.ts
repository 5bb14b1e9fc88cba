/** `get_location`: where the browser says that the user is. */

/** The server gives a browser a minute. */
const TIMEOUT_MS = 30_000;
const MAX_AGE_MS = 60_000;

export async function findLocation(): Promise<unknown> {
  const { geolocation } = navigator;
  if (geolocation === undefined) throw new Error("This browser cannot tell where it is.");
  return new Promise((resolve, reject) => {
    geolocation.getCurrentPosition(
      ({ coords: { latitude, longitude, accuracy }, timestamp }) =>
        resolve({ latitude, longitude, accuracy, timestamp }),
      (error) => reject(new Error(sentence(error))),
      { timeout: TIMEOUT_MS, maximumAge: MAX_AGE_MS },
    );
  });
}

function sentence({ code, message }: GeolocationPositionError): string {
  switch (code) {
    case 1:
      return "The user's browser does not let this page know the location.";
    case 2:
      return "The user's browser could not find out the location.";
    case 3:
      return "The user's browser took too long to find out the location.";
    default:
      return message || "The location is not known.";
  }
}
