package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/google/uuid"
)

// LinkPartner lets a partner sell in a campaign. Doing it again changes nothing.
func (c *Client) LinkPartner(ctx context.Context, campaignID, partnerID uuid.UUID) error {
	_, err := send[nothing](ctx, c, call{
		what: "link partner", method: http.MethodPut, path: linkPath(campaignID, partnerID), repeatable: true,
	})
	return err
}

// UnlinkPartner ends a partner's selling in a campaign. Doing it again changes nothing.
func (c *Client) UnlinkPartner(ctx context.Context, campaignID, partnerID uuid.UUID) error {
	_, err := send[nothing](ctx, c, call{
		what: "unlink partner", method: http.MethodDelete, path: linkPath(campaignID, partnerID), repeatable: true,
	})
	return err
}

// ListCampaignPartners yields the partners who may sell in a campaign, the last linked
// first.
func (c *Client) ListCampaignPartners(ctx context.Context, campaignID uuid.UUID) iter.Seq2[Partner, error] {
	return list[Partner](ctx, c, "list partners of campaign", campaignPath(campaignID)+"/partners", filter{})
}

func linkPath(campaignID, partnerID uuid.UUID) string {
	return campaignPath(campaignID) + "/partners/" + partnerID.String()
}
