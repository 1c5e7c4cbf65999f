package health

import (
	"fmt"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
)

// sessionRules are about the sessions to reflectors and clients.
var sessionRules = []Rule{
	{
		Name: "no-session",
		When: "there is no session with a reflector of the configuration",
		Do:   "the reflector must run, be reachable there, and authenticate in the same way (session of both configurations); its own status says why it refuses",
		Find: func(f *Facts) (list []string) {
			for _, p := range f.Peers {
				if p.Role == "reflector" && p.State != api.PeerEstablished {
					list = append(list, fmt.Sprintf("no session with reflector %s: %s", p.Address, why(&p)))
				}
			}
			return list
		},
	},
	{
		Name: "client-password",
		When: "a connection was refused in the last ten minutes because its password is not this device's, or it asks for another authentication",
		Do:   "give both the same session.auth and session.password-file, or find out who that is",
		Find: refused("client-password"),
	},
	{
		Name: "client-certificate",
		When: "a connection was refused in the last ten minutes because of a certificate or of TLS",
		Do:   "its certificate must be signed by this device's session.tls.ca and name its device id",
		Find: refused("client-certificate"),
	},
	{
		Name: "client-unknown",
		When: "a connection was refused in the last ten minutes because reflector.clients does not have the device, or its role does not fit",
		Do:   "add its id to reflector.clients and reload, or find out who that is",
		Find: refused("client-unknown"),
	},
	{
		Name: "own-id",
		When: "a connection was refused in the last ten minutes because it claims this device's own id",
		Do:   "give one of the two another device.id",
		Find: refused("own-id"),
	},
	{
		Name: "duplicate-id",
		When: "a connection was refused in the last ten minutes because another device with its id is connected, from the address that is named, and answers",
		Do:   "give one of the two another device.id; if nobody cloned a device, find out who has its password or certificate",
		Find: refused("duplicate-id"),
	},
	{
		Name: "client-refused",
		When: "a connection was refused in the last ten minutes for another reason",
		Do:   "the reason says which side is to be changed; a device of another version of the protocol is to be upgraded",
		Find: refused("client-refused"),
	},
	{
		Name: "device-awaited",
		When: "a client of this reflector has no session; its hosts count as they were until the deadline, and are told as aged out then",
		Do:   "see that the device runs and reaches this one: inofctl show status there",
		Find: awaited,
	},
	{
		Name: "peer-certificate",
		When: "the certificate of a device with a session expires within 30 days, or has",
		Do:   "renew it there: its next session will be refused once it has expired",
		Find: expiring,
	},
}

// why is the reason that a session is not there.
func why(p *api.Peer) string {
	if p.LastError == "" {
		return "none was tried yet"
	}
	return p.LastError
}

// refusals are the rules of what a connection may be refused for; client-refused has the rest.
var refusals = map[string]string{
	wire.CodeAuthFailed.String():  "client-password",
	wire.CodeAuthMode.String():    "client-password",
	wire.CodeCertificate.String(): "client-certificate",
	wire.CodeTLS.String():         "client-certificate",
	wire.CodeDevice.String():      "client-unknown",
	wire.CodeRole.String():        "client-unknown",
	wire.CodeOwnID.String():       "own-id",
	wire.CodeDuplicate.String():   "duplicate-id",
}

// refused finds the connections whose refusal belongs to a rule.
func refused(rule string) func(*Facts) []string {
	return func(f *Facts) (list []string) {
		more := 0
		for _, p := range f.Peers {
			mine := refusals[p.LastCode]
			if mine == "" {
				mine = "client-refused"
			}
			switch {
			case !p.Refused || mine != rule:
			case len(list) == mostNamed:
				more++
			default:
				list = append(list, "a connection from "+p.Address+" was refused"+ago(f.Now, p.LastErrorAt)+": "+why(&p))
			}
		}
		if more > 0 {
			list = append(list, fmt.Sprintf("connections from %d more addresses were refused", more))
		}
		return list
	}
}

func ago(now time.Time, at *time.Time) string {
	if at == nil {
		return ""
	}
	return " " + max(0, now.Sub(*at)).Round(time.Second).String() + " ago"
}

func awaited(f *Facts) []string {
	return most(f.Awaited, "%d more devices are awaited", func(a *Awaited) string {
		return fmt.Sprintf("device %s has no session: its %d host(s) are kept until %s (%s left)", a.Device, a.Hosts, a.Until.Format(time.TimeOnly), max(0, a.Until.Sub(f.Now)).Round(time.Second))
	})
}

// expiring names the peers whose certificates expire soon.
func expiring(f *Facts) (list []string) {
	for _, p := range f.Peers {
		if p.State != api.PeerEstablished || p.CertificateExpires == nil {
			continue
		}
		switch left := p.CertificateExpires.Sub(f.Now); {
		case left < 0:
			list = append(list, fmt.Sprintf("the certificate of %s %s has expired: its next session will be refused", p.Role, p.Device))
		case left < config.ExpirySoon:
			list = append(list, fmt.Sprintf("the certificate of %s %s expires in %s", p.Role, p.Device, config.Left(left)))
		}
	}
	return list
}
